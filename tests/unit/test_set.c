#include "unit/model_tools.h"
#include "model/model.h"
#include "pawl/digest.h"

#define SHARDED PAWL_GOLDEN "/safetensors/files/sharded"

static const struct pawl_set_options PLAIN = { .use_own_codes = true };
static const struct pawl_set_options CHECKPOINT = { .index_inside_only = true };

/* Open an index of a folder; the report's text goes to *ret_text. */
static enum pawl_status
open_index(struct pawl_set *set, const char *folder, const char *index, const struct pawl_set_options *options,
           const char **ret_text, struct pawl_error *err)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    struct pawl_report *report = pawl_report_new();
    assert_non_null(report);
    assert_int_equal(pawl_dir_open_path(&dir, pawl_os_posix(), folder, NULL), PAWL_OK);
    pawl_report_begin_verdict(report, pawl_str_z(folder), PAWL_KIND_SAFETENSORS_INDEX);
    int before = count_descriptors();
    enum pawl_status st = pawl_set_open_index(set, &dir, index, options, report, err);
    if (st != PAWL_OK)
        assert_int_equal(count_descriptors(), before); /* nothing stays open */
    pawl_report_end_verdict(report);
    assert_true(pawl_report_ok(report));
    if (ret_text != NULL)
        *ret_text = report_text(report);
    pawl_report_free(report);
    pawl_dir_release(&dir);
    return st;
}

#define INDEX "model.safetensors.index.json"
#define A1 "model-00001-of-00002.safetensors"
#define A2 "model-00002-of-00002.safetensors"

/* Two shards: a, b in the first, c in the second. */
static void
put_two_shards(void)
{
    put_model(A1,
              "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
              "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[8,11]}}",
              "\0\0\200\077\0\0\0\100xyz", 11);
    put_model(A2, "{\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "wxyz", 4);
}

static void
expect(const char *index_text, const struct pawl_set_options *options, enum pawl_status want, const char *want_report)
{
    struct pawl_set set;
    struct pawl_error err = PAWL_ERROR_INIT;
    const char *text;
    host_put(INDEX, index_text);
    enum pawl_status st = open_index(&set, ".", INDEX, options, &text, &err);
    assert_string_equal(text, want_report);
    assert_int_equal(st, want);
    if (st != PAWL_OK) {
        assert_int_equal(err.status, PAWL_CORRUPT);
        assert_true(err.message[0] != '\0' && err.path[0] != '\0');
        assert_int_equal(set.n_files, 0);
    }
    pawl_set_release(&set);
    pawl_set_release(&set); /* the empty state is fine */
}

/* Goal: a sharded model as transformers wrote it opens without a word; every tensor is found where it is. */
static void
opens_golden_shards(void **state)
{
    static const char *const NAMES[] = { "head.weight",      "model.embed.weight", "model.layers.0.b",
                                         "model.layers.0.w", "model.layers.1.b",   "model.layers.1.w",
                                         "model.norm.weight" };
    static const uint32_t FILES[] = { 1, 2, 0, 2, 0, 3, 0 };
    struct pawl_set set;
    const char *text;
    (void)state;
    assert_int_equal(open_index(&set, SHARDED, INDEX, &PLAIN, &text, NULL), PAWL_OK);
    assert_string_equal(text, "");
    assert_int_equal(set.n_files, 4);
    assert_int_equal(set.n, 7);
    assert_int_equal(set.data_bytes, 368);
    assert_int_equal(set.total_size_stated, 368);
    assert_string_equal(set.files[3].name.data, "model-00004-of-00004.safetensors");
    for (size_t i = 0; i < 7; i++) {
        const struct pawl_tensor_info *t = pawl_set_find(&set, pawl_str_z(NAMES[i]));
        assert_non_null(t);
        assert_int_equal(t->file, FILES[i]);
        assert_ptr_equal(t, &set.tensors[t - set.tensors]);
        assert_true(pawl_str_equal(t->name, pawl_str_z(NAMES[i])));
    }
    assert_null(pawl_set_find(&set, pawl_str_z("")));
    assert_null(pawl_set_find(&set, pawl_str_z("head.weigh")));
    assert_null(pawl_set_find(&set, pawl_str_z("head.weight2")));
    for (size_t i = 0; i < set.n; i++) { /* file by file, in file order */
        assert_true(i == 0 || set.tensors[i].file >= set.tensors[i - 1].file);
        assert_ptr_equal(pawl_set_find(&set, set.tensors[i].name), &set.tensors[i]);
    }
    pawl_set_release(&set);
}

/* Goal: metadata missing or null, and totals that are wrong, are no faults: cases 76 and 77. */
static void
wrong_totals_are_warnings(void **state)
{
    struct pawl_set set;
    const char *text;
    (void)state;
    assert_int_equal(open_index(&set, SHARDED "-no-metadata", INDEX, &PLAIN, &text, NULL), PAWL_OK);
    assert_string_equal(text, "");
    assert_true(set.total_size_stated == UINT64_MAX);
    pawl_set_release(&set);
    assert_int_equal(open_index(&set, SHARDED "-wrong-total", INDEX, &CHECKPOINT, &text, NULL), PAWL_OK);
    assert_string_equal(text, "warning total-size " INDEX ": total_size is 376, the tensors have 368 bytes\n");
    assert_int_equal(set.total_size_stated, 376);
    pawl_set_release(&set);

    put_two_shards();
#define MAP "\"weight_map\":{\"a\":\"" A1 "\",\"b\":\"" A1 "\",\"c\":\"" A2 "\"}}"
    expect("{\"metadata\":null," MAP, &PLAIN, PAWL_OK, "");
    expect("{\"metadata\":{}," MAP, &PLAIN, PAWL_OK, "");
    expect("{\"metadata\":{\"total_size\":15}," MAP, &PLAIN, PAWL_OK, "");
    expect("{\"metadata\":{\"total_size\":15.0}," MAP, &PLAIN, PAWL_OK, ""); /* of tools that count in floats */
    expect("{\"metadata\":{\"total_size\":14.5}," MAP, &PLAIN, PAWL_OK,
           "warning total-size " INDEX ": total_size is 14.5, the tensors have 15 bytes\n");
    expect("{\"metadata\":{\"total_size\":\"15\"}," MAP, &PLAIN, PAWL_OK,
           "warning total-size " INDEX ": total_size is a string, the tensors have 15 bytes\n");
    expect("{\"metadata\":{\"total_size\":-1}," MAP, &PLAIN, PAWL_OK,
           "warning total-size " INDEX ": total_size is -1, the tensors have 15 bytes\n");
    expect("{\"metadata\":{\"total_size\":23}," MAP, &PLAIN, PAWL_OK,
           "warning total-size " INDEX ": total_size is 23, the tensors have 15 bytes\n");
}

/* Goal: the text of an index is strict JSON of the right form; what is wrong is said with its place. */
static void
refuses_malformed_indexes(void **state)
{
    (void)state;
    put_two_shards();
    expect("{}", &PLAIN, PAWL_CORRUPT, "content " INDEX ": the index has no weight_map\n");
    expect("[]", &PLAIN, PAWL_CORRUPT, "content " INDEX ": the index is an array, expected an object\n");
    expect("{\"weight_map\":[]}", &PLAIN, PAWL_CORRUPT,
           "content " INDEX ": the index's weight_map is an array, expected an object\n");
    expect("{\"metadata\":3,\"weight_map\":{}}", &PLAIN, PAWL_CORRUPT,
           "content " INDEX ": the index's metadata is a number, expected an object\n");
    expect("{\"weight_map\":{}}", &PLAIN, PAWL_CORRUPT, "content " INDEX ": the index maps no tensor\n");
    expect("{\"weight_map\":{\"a\":7}}", &PLAIN, PAWL_CORRUPT,
           "content " INDEX " a: weight_map gives a number for tensor 'a', expected the name of a file\n");

    struct pawl_set set;
    struct pawl_error err = PAWL_ERROR_INIT;
    host_put(INDEX, "{\"weight_map\":{\"a\":\"x\",\"\\u0061\":\"x\"}}");
    assert_int_equal(open_index(&set, ".", INDEX, &CHECKPOINT, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "content");
    assert_int_equal(open_index(&set, ".", INDEX, &PLAIN, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "duplicate-key");
    host_put(INDEX, "{\"weight_map\":{\"a\":\"x\",}}");
    assert_int_equal(open_index(&set, ".", INDEX, &PLAIN, NULL, &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "json");
    assert_int_equal(err.offset, 23);
    assert_int_equal(unlink(INDEX), 0);
    assert_int_equal(open_index(&set, ".", INDEX, &PLAIN, NULL, &err), PAWL_NO_FILE);
}

/* Goal: index and shards agree, or it is said how not: cases 72 and 73, and the other direction. */
static void
map_and_shards_must_agree(void **state)
{
    (void)state;
    put_two_shards();
    expect("{\"weight_map\":{\"a\":\"" A1 "\",\"b\":\"" A2 "\",\"c\":\"" A2 "\"}}", &PLAIN, PAWL_CORRUPT,
           "content " INDEX " b: the index maps tensor 'b' to '" A2 "', which does not hold it: it is in '" A1 "'\n");
    expect("{\"weight_map\":{\"a\":\"" A1 "\",\"b\":\"" A1 "\",\"c\":\"" A2 "\",\"d\":\"" A2 "\"}}", &PLAIN,
           PAWL_CORRUPT,
           "content " INDEX " d: the index maps tensor 'd' to '" A2
           "', which does not hold it, and no other shard does\n");
    expect("{\"weight_map\":{\"a\":\"" A1 "\",\"c\":\"" A2 "\"}}", &PLAIN, PAWL_CORRUPT,
           "content " INDEX " b: tensor 'b' of '" A1 "' is not in the index\n");
    /* in a checkpoint a file is named once, whatever the number of its faults */
    expect("{\"weight_map\":{\"a\":\"" A2 "\",\"d\":\"" A2 "\"}}", &CHECKPOINT, PAWL_CORRUPT,
           "content " INDEX ": the index maps no tensor to shard 1 of 2 of 'model'\n");

    put_model(A2,
              "{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
              "\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
              "xyzwxyz", 7);
    expect("{" MAP, &PLAIN, PAWL_CORRUPT,
           "content " INDEX " b: tensor 'b' is in '" A1 "' and in '" A2 "': the bytes are the same\n");
    put_model(A2,
              "{\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
              "\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
              "xyZwxyz", 7);
    expect("{" MAP, &PLAIN, PAWL_CORRUPT,
           "content " INDEX " b: tensor 'b' is in '" A1 "' and in '" A2 "': the bytes differ\n");
    put_model(A2,
              "{\"b\":{\"dtype\":\"I8\",\"shape\":[3],\"data_offsets\":[0,3]},"
              "\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
              "xyzwxyz", 7);
    expect("{" MAP, &PLAIN, PAWL_CORRUPT,
           "content " INDEX " b: tensor 'b' is in '" A1 "' and in '" A2 "': dtype or shape differ\n");
}

/* Goal: a shard that is missing, or is broken, is said under its own name and with its own code; the others are looked at all the same. */
static void
tells_what_is_wrong_with_a_shard(void **state)
{
    (void)state;
    put_two_shards();
    assert_int_equal(unlink(A1), 0);
    expect("{" MAP, &CHECKPOINT, PAWL_CORRUPT,
           "missing-file " A1 ": the index maps 2 tensors to '" A1 "', which is not there\n");
    assert_int_equal(mkdir(A1, 0777), 0);
    expect("{" MAP, &CHECKPOINT, PAWL_CORRUPT,
           "missing-file " A1 ": the index maps 2 tensors to '" A1 "', which is no regular file\n");
    assert_int_equal(rmdir(A1), 0);
    assert_int_equal(mkfifo(A1, 0666), 0);
    expect("{" MAP, &CHECKPOINT, PAWL_CORRUPT,
           "missing-file " A1 ": the index maps 2 tensors to '" A1 "', which is no regular file\n");
    assert_int_equal(unlink(A1), 0);

    struct pawl_set set;
    const char *text;
    put_two_shards();
    put_model(A2, "{\"c\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", "wxy", 3);
    host_put(INDEX, "{" MAP);
    assert_int_equal(open_index(&set, ".", INDEX, &PLAIN, &text, NULL), PAWL_CORRUPT);
    assert_non_null(strstr(text, "truncated " A2 " c: "));
    assert_null(strstr(text, INDEX)); /* the index is not to blame */
    assert_int_equal(open_index(&set, ".", INDEX, &CHECKPOINT, &text, NULL), PAWL_CORRUPT);
    assert_non_null(strstr(text, "content " A2 " c: "));
    assert_int_equal(open_index(&set, ".", INDEX, &CHECKPOINT, NULL, NULL), PAWL_CORRUPT); /* nobody wants to know */
}

/* Goal: numbered shards are 1 ... N of one N. */
static void
numbers_of_shards_must_be_whole(void **state)
{
    (void)state;
    put_two_shards();
    assert_int_equal(rename(A2, "model-00003-of-00003.safetensors"), 0);
    expect("{\"weight_map\":{\"a\":\"" A1 "\",\"b\":\"" A1 "\",\"c\":\"model-00003-of-00003.safetensors\"}}",
           &CHECKPOINT, PAWL_CORRUPT,
           "content " INDEX ": shards of 'model' are numbered of 2 and, in 'model-00003-of-00003.safetensors', of 3\n");
    assert_int_equal(rename(A1, "model-00001-of-00003.safetensors"), 0);
    expect("{\"weight_map\":{\"a\":\"model-00001-of-00003.safetensors\",\"b\":\"model-00001-of-00003.safetensors\","
           "\"c\":\"model-00003-of-00003.safetensors\"}}",
           &CHECKPOINT, PAWL_CORRUPT, "content " INDEX ": the index maps no tensor to shard 2 of 3 of 'model'\n");
    assert_int_equal(rename("model-00003-of-00003.safetensors", "model-00002-of-00003.safetensors"), 0);
    expect("{\"weight_map\":{\"a\":\"model-00001-of-00003.safetensors\",\"b\":\"model-00001-of-00003.safetensors\","
           "\"c\":\"model-00002-of-00003.safetensors\"}}",
           &CHECKPOINT, PAWL_CORRUPT, "content " INDEX ": the index maps no tensor to shard 3 of 3 of 'model'\n");
    /* other names are not counted */
    assert_int_equal(rename("model-00001-of-00003.safetensors", "first.safetensors"), 0);
    assert_int_equal(rename("model-00002-of-00003.safetensors", "model-0002-of-0003.safetensors"), 0);
    expect("{\"weight_map\":{\"a\":\"first.safetensors\",\"b\":\"first.safetensors\","
           "\"c\":\"model-0002-of-0003.safetensors\"}}",
           &CHECKPOINT, PAWL_OK, "");
}

/* Goal: no name and no link leads out of the directory; but a model hub's cache works. */
static void
stays_inside_the_directory(void **state)
{
    struct pawl_set set;
    struct pawl_error err = PAWL_ERROR_INIT;
    char here[4096];
    char text[6000];
    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    put_model("out.safetensors", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x", 1);
    assert_int_equal(mkdir("in", 0777), 0);
    assert_int_equal(mkdir("in/sub", 0777), 0);
    assert_int_equal(mkdir("blobs", 0777), 0);
    copy_file("out.safetensors", "in/sub/a.safetensors");

    static const char *const OUTSIDE[] = { "../out.safetensors",
                                           "sub/../../out.safetensors",
                                           "./sub/a.safetensors",
                                           "sub//a.safetensors",
                                           "",
                                           "sub/a.safetensors/",
                                           "..",
                                           "sub/.." };
    for (size_t i = 0; i < sizeof OUTSIDE / sizeof OUTSIDE[0]; i++) {
        (void)snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s\"}}", OUTSIDE[i]);
        host_put("in/" INDEX, text);
        assert_int_equal(open_index(&set, "in", INDEX, &PLAIN, NULL, &err), PAWL_CORRUPT);
        assert_string_equal(err.code, "content");
        assert_non_null(strstr(err.path, INDEX));
    }
    (void)snprintf(text, sizeof text, "{\"weight_map\":{\"a\":\"%s/out.safetensors\"}}", here);
    host_put("in/" INDEX, text);
    assert_int_equal(open_index(&set, "in", INDEX, &PLAIN, NULL, &err), PAWL_CORRUPT);
    assert_non_null(strstr(err.message, "absolute path"));

    host_put("in/" INDEX, "{\"weight_map\":{\"a\":\"sub/a.safetensors\"}}");
    assert_int_equal(open_index(&set, "in", INDEX, &PLAIN, NULL, &err), PAWL_OK);
    pawl_set_release(&set);
    assert_int_equal(open_index(&set, "in", INDEX, &CHECKPOINT, NULL, &err), PAWL_CORRUPT);

    /* links */
    host_put("in/" INDEX, "{\"weight_map\":{\"a\":\"a.safetensors\"}}");
    static const struct {
        const char *link;
        bool is_fine;
    } LINKS[] = { { "../out.safetensors", false },
                  { "sub/a.safetensors", true },
                  { "sub/../sub/./a.safetensors", true },
                  { "../in/sub/a.safetensors", false },
                  { "../blobs/d1", false },
                  { "a.safetensors", false } /* itself */ };
    for (size_t i = 0; i < sizeof LINKS / sizeof LINKS[0]; i++) {
        assert_int_equal(symlink(LINKS[i].link, "in/a.safetensors"), 0);
        enum pawl_status st = open_index(&set, "in", INDEX, &PLAIN, NULL, &err);
        if (LINKS[i].is_fine)
            assert_int_equal(st, PAWL_OK);
        else
            assert_int_equal(st, PAWL_CORRUPT);
        pawl_set_release(&set);
        assert_int_equal(open_index(&set, "in", INDEX, &CHECKPOINT, NULL, &err), PAWL_CORRUPT);
        assert_string_equal(err.code, "missing-file");
        assert_int_equal(unlink("in/a.safetensors"), 0);
    }
    (void)snprintf(text, sizeof text, "%s/out.safetensors", here);
    assert_int_equal(symlink(text, "in/a.safetensors"), 0);
    assert_int_equal(open_index(&set, "in", INDEX, &PLAIN, NULL, &err), PAWL_CORRUPT);
    assert_non_null(strstr(err.message, "leaves the directory"));
    assert_int_equal(unlink("in/a.safetensors"), 0);
    /* a folder that is a link */
    assert_int_equal(symlink("..", "in/up"), 0);
    host_put("in/" INDEX, "{\"weight_map\":{\"a\":\"up/out.safetensors\"}}");
    assert_int_equal(open_index(&set, "in", INDEX, &PLAIN, NULL, &err), PAWL_CORRUPT);
    assert_non_null(strstr(err.message, "is a link"));
}

/* Goal: the cache of a model hub, where a snapshot's files, the index too, are links to ../../blobs. */
static void
follows_links_into_a_hub_cache(void **state)
{
    struct pawl_set set;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)state;
    static const char *const FOLDERS[] = {
        "hub", "hub/blobs", "hub/snapshots", "hub/snapshots/abc", "hub/snapshots/abc/unet", "evil", "evil/x", "evil/x/y"
    };
    for (size_t i = 0; i < sizeof FOLDERS / sizeof FOLDERS[0]; i++)
        assert_int_equal(mkdir(FOLDERS[i], 0777), 0);
    put_model("hub/blobs/d1", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "x", 1);
    host_put("hub/blobs/d2", "{\"weight_map\":{\"a\":\"a.safetensors\"}}");
    assert_int_equal(symlink("../../blobs/d1", "hub/snapshots/abc/a.safetensors"), 0);
    assert_int_equal(symlink("../../blobs/d2", "hub/snapshots/abc/" INDEX), 0);
    assert_int_equal(open_index(&set, "hub/snapshots/abc", INDEX, &PLAIN, NULL, &err), PAWL_OK);
    assert_int_equal(set.n, 1);
    pawl_set_release(&set);
    /* a model in a folder of its snapshot */
    assert_int_equal(symlink("../../../blobs/d1", "hub/snapshots/abc/unet/a.safetensors"), 0);
    assert_int_equal(symlink("../../../blobs/d2", "hub/snapshots/abc/unet/" INDEX), 0);
    assert_int_equal(open_index(&set, "hub/snapshots/abc/unet", INDEX, &PLAIN, NULL, &err), PAWL_OK);
    pawl_set_release(&set);
    /* a shard in a folder below */
    assert_int_equal(unlink("hub/snapshots/abc/" INDEX), 0);
    host_put("hub/snapshots/abc/" INDEX, "{\"weight_map\":{\"a\":\"unet/a.safetensors\"}}");
    assert_int_equal(open_index(&set, "hub/snapshots/abc", INDEX, &PLAIN, NULL, &err), PAWL_OK);
    pawl_set_release(&set);
    /* one level up more is a cache only where there are snapshots; a blob is no link, and no path */
    assert_int_equal(mkdir("blobs", 0777), 0);
    copy_file("hub/blobs/d1", "blobs/d1");
    host_put("evil/x/y/" INDEX, "{\"weight_map\":{\"a\":\"a.safetensors\"}}");
    assert_int_equal(symlink("../../../blobs/d1", "evil/x/y/a.safetensors"), 0);
    assert_int_equal(open_index(&set, "evil/x/y", INDEX, &PLAIN, NULL, &err), PAWL_CORRUPT);
    assert_int_equal(unlink("evil/x/y/a.safetensors"), 0);
    assert_int_equal(mkdir("evil/blobs", 0777), 0);
    assert_int_equal(symlink("../../../blobs/d1", "evil/blobs/d1"), 0);
    assert_int_equal(symlink("../../blobs/d1", "evil/x/y/a.safetensors"), 0);
    assert_int_equal(open_index(&set, "evil/x/y", INDEX, &PLAIN, NULL, &err), PAWL_CORRUPT);
    assert_int_equal(unlink("evil/x/y/a.safetensors"), 0);
    assert_int_equal(symlink("../../blobs/../../blobs/d1", "evil/x/y/a.safetensors"), 0);
    assert_int_equal(open_index(&set, "evil/x/y", INDEX, &PLAIN, NULL, &err), PAWL_CORRUPT);
    /* nor is the folder of the blobs a link: an archive could carry one to anywhere */
    assert_int_equal(unlink("evil/x/y/a.safetensors"), 0);
    assert_int_equal(unlink("evil/blobs/d1"), 0);
    assert_int_equal(rmdir("evil/blobs"), 0);
    assert_int_equal(symlink("../hub/blobs", "evil/blobs"), 0);
    assert_int_equal(symlink("../../blobs/d1", "evil/x/y/a.safetensors"), 0);
    assert_int_equal(open_index(&set, "evil/x/y", INDEX, &PLAIN, NULL, &err), PAWL_CORRUPT);
    assert_int_equal(unlink("evil/blobs"), 0);
    assert_int_equal(mkdir("evil/blobs", 0777), 0);
    copy_file("hub/blobs/d1", "evil/blobs/d1");
    assert_int_equal(open_index(&set, "evil/x/y", INDEX, &PLAIN, NULL, &err), PAWL_OK);
    pawl_set_release(&set);
}

/* Goal: files beside the shards are named, and a stale index with both sets: case 74. */
static void
names_strays_and_stale_indexes(void **state)
{
    (void)state;
    put_two_shards();
    copy_file(A1, "model.safetensors");
    host_put("notes.txt", "x");
    expect("{" MAP, &PLAIN, PAWL_OK,
           "warning unlisted-file model.safetensors: 'model.safetensors' is not in the index: it is ignored\n");
    expect("{" MAP, &CHECKPOINT, PAWL_OK, ""); /* there the manifest speaks */
    assert_int_equal(unlink("model.safetensors"), 0);
    expect("{\"weight_map\":{\"a\":\"model-00001-of-00001.safetensors\"}}", &PLAIN, PAWL_CORRUPT,
           "missing-file model-00001-of-00001.safetensors: the index maps 1 tensor to "
           "'model-00001-of-00001.safetensors', which is not there\n"
           "warning unlisted-file " A1 ": '" A1 "' is not in the index, which has other files: 1, "
           "'model-00001-of-00001.safetensors' the first of them; the index or the shards are stale\n"
           "warning unlisted-file " A2 ": '" A2 "' is not in the index, which has other files: 1, "
           "'model-00001-of-00001.safetensors' the first of them; the index or the shards are stale\n");
}

/* ---- aliases ---- */

static enum pawl_status
open_with_metadata(struct pawl_set *set, const char *metadata, struct pawl_error *err)
{
    struct pawl_dir dir = PAWL_DIR_INIT;
    char header[1000];
    (void)snprintf(header, sizeof header,
                   "{\"__metadata__\":{%s},\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                   "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                   metadata);
    put_model("m.safetensors", header, "xy", 2);
    assert_int_equal(pawl_dir_open_path(&dir, pawl_os_posix(), ".", NULL), PAWL_OK);
    assert_int_equal(pawl_set_open_file(set, &dir, "m.safetensors", &PLAIN, NULL), PAWL_OK);
    pawl_dir_release(&dir);
    return pawl_set_check_aliases(set, err);
}

/* Goal: aliases are found by name, and ones that mean nothing are told from the others. */
static void
aliases_have_targets_that_are_tensors(void **state)
{
    struct pawl_set set;
    struct pawl_error err = PAWL_ERROR_INIT;
    (void)state;
    assert_int_equal(open_with_metadata(&set, "\"pawl.alias.z\":\"a\",\"format\":\"pt\",\"pawl.alias.c\":\"b\"", &err),
                     PAWL_OK);
    assert_int_equal(set.n_aliases, 2);
    assert_true(pawl_str_equal(set.aliases[0].key, PAWL_STR("c"))); /* ascending */
    assert_ptr_equal(pawl_set_find(&set, PAWL_STR("z")), pawl_set_find(&set, PAWL_STR("a")));
    assert_ptr_equal(pawl_set_find(&set, PAWL_STR("c")), pawl_set_find(&set, PAWL_STR("b")));
    assert_null(pawl_set_find(&set, PAWL_STR("pawl.alias.c")));
    pawl_set_release(&set);
    assert_int_equal(open_with_metadata(&set, "\"pawl.alias.z\":\"q\",\"pawl.alias.y\":\"a\"", &err), PAWL_CORRUPT);
    assert_string_equal(err.code, "content");
    assert_string_equal(err.message, "the alias 'z' is of 'q', which is no tensor here");
    assert_int_equal(set.n_aliases, 1);
    assert_null(pawl_set_find(&set, PAWL_STR("z")));
    assert_non_null(pawl_set_find(&set, PAWL_STR("y")));
    pawl_set_release(&set);
    assert_int_equal(open_with_metadata(&set, "\"pawl.alias.b\":\"a\"", &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "the alias 'b' of 'a' is itself a tensor");
    pawl_set_release(&set);
    /* an alias of an alias has no tensor */
    assert_int_equal(open_with_metadata(&set, "\"pawl.alias.x\":\"a\",\"pawl.alias.y\":\"x\"", &err), PAWL_CORRUPT);
    assert_string_equal(err.message, "the alias 'y' is of 'x', which is no tensor here");
    pawl_set_release(&set);
}

/* ---- size ---- */

/* Goal: 100,000 tensors in two shards open and are found in linear time, and a map of them that is all wrong tells a few and counts. */
static void
opens_a_hundred_thousand_tensors(void **state)
{
    enum { N = 100000 };
    (void)state;
    struct pawl_buffer index = PAWL_BUFFER_INIT;
    (void)pawl_buffer_add_z(&index, "{\"weight_map\":{");
    for (int shard = 0; shard < 2; shard++) {
        struct pawl_buffer header = PAWL_BUFFER_INIT;
        for (int i = 0; i < N / 2; i++) {
            int k = shard * N / 2 + i;
            (void)pawl_buffer_printf(&header, "%c\"t%d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                                     i == 0 ? '{' : ',', k, i, i + 1);
            (void)pawl_buffer_printf(&index, "%s\"t%d\":\"%s\"", k == 0 ? "" : ",", k, shard == 0 ? A1 : A2);
        }
        (void)pawl_buffer_add_char(&header, '}');
        assert_true(pawl_buffer_terminate(&header));
        unsigned char *data = calloc(1, N / 2);
        put_model(shard == 0 ? A1 : A2, header.data, data, N / 2);
        free(data);
        pawl_buffer_release(&header);
    }
    (void)pawl_buffer_add_z(&index, "}}");
    put_bytes(INDEX, index.data, index.len);
    struct pawl_set set;
    assert_int_equal(open_index(&set, ".", INDEX, &PLAIN, NULL, NULL), PAWL_OK);
    assert_int_equal(set.n, N);
    for (int i = 0; i < N; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "t%d", i);
        const struct pawl_tensor_info *t = pawl_set_find(&set, pawl_str_z(name));
        assert_ptr_equal(t, &set.tensors[i]);
        assert_int_equal(t->file, i >= N / 2);
    }
    pawl_set_release(&set);
    /* the map turned around */
    const char *text;
    for (char *at = index.data; (size_t)(at - index.data) + 40 < index.len; at++) {
        if (memcmp(at, "model-0000", 10) == 0)
            at[10] = at[10] == '1' ? '2' : '1';
    }
    put_bytes(INDEX, index.data, index.len);
    assert_int_equal(open_index(&set, ".", INDEX, &PLAIN, &text, NULL), PAWL_CORRUPT);
    assert_non_null(strstr(text, "the index maps tensor 't0' to '" A2 "', which does not hold it: it is in '" A1 "'"));
    assert_non_null(strstr(text, "and 99979 more faults of this kind"));
    pawl_buffer_release(&index);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_enter, fixture_leave)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(opens_golden_shards),
        TEST(wrong_totals_are_warnings),
        TEST(refuses_malformed_indexes),
        TEST(map_and_shards_must_agree),
        TEST(tells_what_is_wrong_with_a_shard),
        TEST(numbers_of_shards_must_be_whole),
        TEST(stays_inside_the_directory),
        TEST(follows_links_into_a_hub_cache),
        TEST(names_strays_and_stale_indexes),
        TEST(aliases_have_targets_that_are_tensors),
        TEST(opens_a_hundred_thousand_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
