/*
 * Opening the files of a set. Their names come from an index that somebody else
 * wrote, and so may links beside it: neither may lead out of the directory. Names are
 * walked component by component, links are followed here and not by the system, and
 * the one way out is the one that model hubs use: their cache keeps a snapshot's files
 * as links to ../../blobs/<digest>.
 */
#include "model/set.h"

#include <inttypes.h>
#include <stdlib.h>

/* Links followed from one name; honest directories have one. */
#define HOPS_MAX 8

/* PATH_MAX of Linux: no link is longer. */
#define LINK_BYTES_MAX ((size_t)4096)

static enum pawl_status
refuse(struct pawl_error *err, struct pawl_str name, const char *why)
{
    return pawl_fail(err, PAWL_CORRUPT, "content", "file '%s' %s", PAWL_SHOW(name), why);
}

/* Is it made of plain components: relative, none empty, "." or ".."? */
static const char *
name_fault(struct pawl_str name, bool is_flat)
{
    if (name.len == 0)
        return "has no name";
    if (memchr(name.data, 0, name.len) != NULL)
        return "has a name with a NUL";
    if (name.data[0] == '/')
        return "has an absolute path: files of a set are inside its directory";
    for (size_t begin = 0; begin <= name.len;) {
        const char *slash = memchr(name.data + begin, '/', name.len - begin);
        size_t end = slash == NULL ? name.len : (size_t)(slash - name.data);
        struct pawl_str part = pawl_str_make(name.data + begin, end - begin);
        if (part.len == 0 || pawl_str_equal(part, PAWL_STR(".")) || pawl_str_equal(part, PAWL_STR("..")))
            return part.len == 2 ? "leaves the directory" : "has a name with an empty component";
        if (slash == NULL)
            break;
        if (is_flat)
            return "is not directly in the directory";
        begin = end + 1;
    }
    return NULL;
}

/*
 * Where the link `text`, found at `at`, leads, both relative to the directory, "." and ".." resolved. No component on
 * the way is a link, so doing it by text is exact. False: out of the directory.
 */
static bool
resolve_link(struct pawl_buffer *ret_name, struct pawl_str at, struct pawl_str text)
{
    pawl_buffer_clear(ret_name);
    size_t folder = at.len;
    while (folder > 0 && at.data[folder - 1] != '/')
        folder--;
    (void)pawl_buffer_add(ret_name, at.data, folder == 0 ? 0 : folder - 1);

    if (text.len == 0 || text.data[0] == '/')
        return false;
    for (size_t begin = 0; begin < text.len;) {
        const char *slash = memchr(text.data + begin, '/', text.len - begin);
        size_t end = slash == NULL ? text.len : (size_t)(slash - text.data);
        struct pawl_str part = pawl_str_make(text.data + begin, end - begin);
        begin = end + 1;
        if (part.len == 0 || pawl_str_equal(part, PAWL_STR(".")))
            continue;
        if (pawl_str_equal(part, PAWL_STR(".."))) {
            if (ret_name->len == 0)
                return false;
            while (ret_name->len > 0 && ret_name->data[ret_name->len - 1] != '/')
                ret_name->len--;
            if (ret_name->len > 0)
                ret_name->len--;
            continue;
        }
        if (ret_name->len > 0)
            (void)pawl_buffer_add_char(ret_name, '/');
        (void)pawl_buffer_add_str(ret_name, part);
    }
    return ret_name->len > 0;
}

static size_t
count_slashes(struct pawl_str name)
{
    size_t n = 0;
    for (size_t i = 0; i < name.len; i++)
        n += name.data[i] == '/';
    return n;
}

/* "../../blobs/<one name>": how many "../", 0 when it is not of that form. */
static size_t
blob_ups(struct pawl_str text)
{
    size_t ups = 0;
    while (pawl_str_starts(text, PAWL_STR("../"))) {
        text = pawl_str_make(text.data + 3, text.len - 3);
        ups++;
    }
    if (!pawl_str_starts(text, PAWL_STR("blobs/")))
        return 0;
    text = pawl_str_make(text.data + 6, text.len - 6);
    return name_fault(text, true) == NULL ? ups : 0;
}

/* Open "<directory>/<folder of at>/<text>", a blob of a hub's cache: itself a regular file, in a directory that is no link, as
 * the cache may have been unpacked from an archive with the model. */
static enum pawl_status
open_blob(struct pawl_file *file, const struct pawl_dir *dir, struct pawl_str at, struct pawl_str text, size_t ups,
          struct pawl_error *err)
{
    struct pawl_dir cache = PAWL_DIR_INIT;
    struct pawl_dir blobs = PAWL_DIR_INIT;
    struct pawl_dir snapshots = PAWL_DIR_INIT;
    struct pawl_buffer path = PAWL_BUFFER_INIT;
    enum pawl_status st;

    size_t folder = at.len;
    while (folder > 0 && at.data[folder - 1] != '/')
        folder--;
    size_t last = text.len;
    while (text.data[last - 1] != '/')
        last--;
    (void)pawl_buffer_add_z(&path, dir->path);
    (void)pawl_buffer_add_char(&path, '/');
    (void)pawl_buffer_add(&path, at.data, folder);
    (void)pawl_buffer_add(&path, text.data, last - strlen("blobs/"));
    if (!pawl_buffer_terminate(&path)) {
        st = pawl_fail_memory(err, path.len);
        goto out;
    }
    st = pawl_dir_open_path(&cache, dir->os, path.data, err);
    if (st != PAWL_OK)
        goto out;
    if (ups > 2 + count_slashes(at)) { /* a model in a folder of its snapshot: the cache must look like one */
        st = pawl_dir_open_in(&snapshots, &cache, "snapshots", err);
        if (st != PAWL_OK) {
            if (!pawl_status_is_machine_fault(st))
                st = refuse(err, at, "is a link that leaves the directory");
            goto out;
        }
    }
    st = pawl_dir_open_in(&blobs, &cache, "blobs", err);
    if (st == PAWL_OK)
        st = pawl_file_open_in(file, &blobs, text.data + last, 0, err);
out:
    pawl_dir_release(&cache);
    pawl_dir_release(&blobs);
    pawl_dir_release(&snapshots);
    pawl_buffer_release(&path);
    return st;
}

/* The folder of `name` inside `dir`, walked without following a link. *ret_last: the last component. */
static enum pawl_status
open_folder(struct pawl_dir *ret_folder, const struct pawl_dir *dir, char *name, const char **ret_last,
            struct pawl_error *err)
{
    struct pawl_dir at = PAWL_DIR_INIT;
    const struct pawl_dir *parent = dir;
    enum pawl_status st = PAWL_OK;
    char *part = name;
    for (char *slash = strchr(part, '/'); slash != NULL; slash = strchr(part, '/')) {
        struct pawl_os_stat stat;
        struct pawl_dir next = PAWL_DIR_INIT;
        *slash = '\0';
        st = pawl_dir_stat(parent, part, &stat, err);
        if (st == PAWL_OK && stat.kind == PAWL_OS_LINK)
            st = refuse(err, pawl_str_z(part), "stands where a folder should be, and is a link");
        if (st == PAWL_OK)
            st = pawl_dir_open_in(&next, parent, part, err);
        *slash = '/';
        if (st != PAWL_OK)
            break;
        pawl_dir_release(&at);
        at = next;
        parent = &at;
        part = slash + 1;
    }
    if (st != PAWL_OK) {
        pawl_dir_release(&at);
        return st;
    }
    *ret_folder = at;
    *ret_last = part;
    return PAWL_OK;
}

/* One step: open `name`, or, when it is a link to another name inside, put that into `name`. */
static enum pawl_status
open_or_follow(struct pawl_file *file, const struct pawl_dir *dir, struct pawl_buffer *name,
               const struct pawl_set_options *options, bool *ret_is_open, struct pawl_error *err)
{
    struct pawl_dir folder = PAWL_DIR_INIT;
    struct pawl_buffer next = PAWL_BUFFER_INIT;
    struct pawl_os_stat stat;
    const char *last;
    char text[LINK_BYTES_MAX + 1];
    size_t text_len = 0;

    *ret_is_open = false;
    enum pawl_status st = open_folder(&folder, dir, name->data, &last, err);
    if (st != PAWL_OK)
        return st;
    const struct pawl_dir *in = folder.handle != NULL ? &folder : dir;
    st = pawl_dir_stat(in, last, &stat, err);
    if (st != PAWL_OK)
        goto out;
    if (stat.kind != PAWL_OS_LINK) {
        st = pawl_file_open_in(file, in, last, 0, err);
        *ret_is_open = st == PAWL_OK;
        goto out;
    }
    struct pawl_str at = pawl_buffer_str(name);
    if (options->index_inside_only) {
        st = pawl_fail(err, PAWL_CORRUPT, "not-a-file", "file '%s' is a link, expected a regular file", PAWL_SHOW(at));
        goto out;
    }
    int code = dir->os->read_link(dir->os->context, in->handle, last, text, sizeof text - 1, &text_len);
    if (code != 0) {
        st = pawl_fail_os(err, code, "read the link '%s'", PAWL_SHOW(at));
        goto out;
    }
    text[text_len] = '\0';
    struct pawl_str link = pawl_str_make(text, text_len);
    bool is_inside = resolve_link(&next, at, link);
    if (!pawl_buffer_terminate(&next)) { /* also where a part was left out for want of memory */
        st = pawl_fail_memory(err, text_len);
        goto out;
    }
    if (is_inside) {
        struct pawl_buffer old = *name;
        *name = next;
        next = old;
        goto out;
    }
    size_t ups = blob_ups(link);
    if (ups == 2 + count_slashes(at) || ups == 3 + count_slashes(at)) {
        st = open_blob(file, dir, at, link, ups, err);
        *ret_is_open = st == PAWL_OK;
        goto out;
    }
    st = pawl_fail(err, PAWL_CORRUPT, "content", "file '%s' is a link to '%s', which leaves the directory",
                   PAWL_SHOW(at), PAWL_SHOW(link));
    pawl_error_hint(err, "open the file that the link leads to by its own path");
out:
    pawl_dir_release(&folder);
    pawl_buffer_release(&next);
    return st;
}

enum pawl_status
pawl_member_open(struct pawl_file *file, const struct pawl_dir *dir, struct pawl_str name,
                 const struct pawl_set_options *options, struct pawl_error *err)
{
    struct pawl_buffer at = PAWL_BUFFER_INIT;
    enum pawl_status st;

    const char *why = name_fault(name, options->index_inside_only);
    if (why != NULL)
        return refuse(err, name, why);
    if (!pawl_buffer_add_str(&at, name) || !pawl_buffer_terminate(&at)) {
        pawl_buffer_release(&at);
        return pawl_fail_memory(err, name.len);
    }
    bool is_open = false;
    unsigned hops = 0;
    do {
        st = open_or_follow(file, dir, &at, options, &is_open, err);
    } while (st == PAWL_OK && !is_open && ++hops < HOPS_MAX);
    if (st == PAWL_OK && !is_open)
        st = refuse(err, name, "leads through more links than a directory has");
    pawl_buffer_release(&at);
    return st;
}
