/* trainer_state.json, read and printed. */
#include <stdlib.h>
#include "checkpoint/documents.h"
#include "checkpoint/fields.h"

#define PCG_STATE "pcg_state"
#define PCG_INC "pcg_inc"

static enum pawl_status
parse_cursor(const struct pawl_json_value *value, struct pawl_trainer_state *state, struct pawl_error *err)
{
    static const char *const NAMES[] = { "shard", "offset" };
    const struct pawl_json_value *members[2];
    enum pawl_status st = pawl_fields_object(value, NAMES, 2, 2, members, err);
    if (st == PAWL_OK)
        st = pawl_field_count(members[0], "shard", &state->cursor_shard, err);
    if (st == PAWL_OK)
        st = pawl_field_count(members[1], "offset", &state->cursor_offset, err);
    return pawl_context(err, st, "data_cursor");
}

/* All keys are 16 hex digits; pcg_state and pcg_inc must be there, and the increment odd: an even one is no PCG stream. */
static enum pawl_status
parse_rng(struct pawl_arena *arena, const struct pawl_json_value *value, struct pawl_trainer_document *document,
          struct pawl_error *err)
{
    if (value->type != PAWL_JSON_OBJECT)
        return pawl_field_fail(value, "", "an object", err);
    document->rng = pawl_arena_take_array(arena, value->n == 0 ? 1 : value->n, sizeof *document->rng);
    if (document->rng == NULL)
        return pawl_fail_memory(err, value->n * sizeof *document->rng);
    document->n_rng = value->n;
    for (size_t i = 0; i < value->n; i++) {
        const struct pawl_json_value *member = &value->first[i];
        struct pawl_show show;
        document->rng[i].key = member->key;
        enum pawl_status st =
            pawl_field_hex(member, pawl_show_str(&show, member->key), 16, &document->rng[i].value, err);
        if (st != PAWL_OK)
            return st;
    }
    const struct pawl_json_value *state = pawl_json_member(value, PAWL_STR(PCG_STATE));
    const struct pawl_json_value *inc = pawl_json_member(value, PAWL_STR(PCG_INC));
    if (state == NULL || inc == NULL)
        return pawl_fail_at(err, PAWL_CORRUPT, "content", value->offset, "the key \"%s\" is missing",
                            state == NULL ? PCG_STATE : PCG_INC);
    struct pawl_error parse_err = PAWL_ERROR_INIT;
    if (pawl_pcg32_parse(&document->state.rng, state->text, inc->text, &parse_err) != PAWL_OK)
        return pawl_field_fail(inc, PCG_INC, "an odd increment", err);
    document->state.has_rng = document->state.rng.state != 0 || document->state.rng.inc != 1;
    return PAWL_OK;
}

static enum pawl_status
parse_reals(const struct pawl_json_value *lr, const struct pawl_json_value *loss_scale,
            struct pawl_trainer_state *state, struct pawl_error *err)
{
    enum pawl_status st = pawl_field_real(lr, "lr", &state->lr, err);
    if (st != PAWL_OK)
        return st;
    if (!(state->lr >= 0))
        return pawl_field_fail(lr, "lr", "a number that is not negative", err);
    state->has_loss_scale = loss_scale != NULL;
    if (loss_scale == NULL)
        return PAWL_OK;
    st = pawl_field_real(loss_scale, "loss_scale", &state->loss_scale, err);
    if (st != PAWL_OK)
        return st;
    if (!(state->loss_scale > 0))
        return pawl_field_fail(loss_scale, "loss_scale", "a number above 0", err);
    return PAWL_OK;
}

static enum pawl_status
parse_git_sha(const struct pawl_json_value *value, struct pawl_trainer_state *state, struct pawl_error *err)
{
    struct pawl_str text;
    bool is_unknown = value->type == PAWL_JSON_STRING && pawl_str_equal(value->text, PAWL_STR("unknown"));
    if (is_unknown)
        text = value->text;
    else if (pawl_field_hex(value, "git_sha", 40, &text, NULL) != PAWL_OK)
        return pawl_field_fail(value, "git_sha", "40 lowercase hex digits or \"unknown\"", err);
    memcpy(state->git_sha, text.data, text.len);
    state->git_sha[text.len] = '\0';
    return PAWL_OK;
}

enum pawl_status
pawl_trainer_state_parse(struct pawl_arena *arena, struct pawl_trainer_document *ret_document, const void *text,
                         size_t bytes, struct pawl_error *err)
{
    static const char *const NAMES[] = { "step", "tokens_seen",   "data_cursor", "rng",
                                         "lr",   "config_sha256", "git_sha",     "loss_scale" };
    const struct pawl_json_value *members[8];
    const struct pawl_json_value *object = NULL;
    struct pawl_trainer_document document = { 0 };
    struct pawl_str config;

    enum pawl_status st = pawl_fields_parse(arena, text, bytes, &object, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_fields_object(object, NAMES, 8, 7, members, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_field_count(members[0], "step", &document.state.step, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_field_count(members[1], "tokens_seen", &document.state.tokens_seen, err);
    if (st != PAWL_OK)
        return st;
    st = parse_cursor(members[2], &document.state, err);
    if (st != PAWL_OK)
        return st;
    st = parse_rng(arena, members[3], &document, err);
    if (st != PAWL_OK)
        return pawl_context(err, st, "rng");
    st = parse_reals(members[4], members[7], &document.state, err);
    if (st != PAWL_OK)
        return st;
    st = pawl_field_hex(members[5], "config_sha256", 64, &config, err);
    if (st != PAWL_OK)
        return st;
    memcpy(document.state.config_sha256, config.data, 64);
    document.state.config_sha256[64] = '\0';
    st = parse_git_sha(members[6], &document.state, err);
    if (st != PAWL_OK)
        return st;
    *ret_document = document;
    return PAWL_OK;
}

/* pcg_state, pcg_inc, then the others in byte order. */
static int
compare_rng_keys(const void *a, const void *b)
{
    const struct pawl_pair *pairs[2] = { a, b };
    int rank[2];
    for (int i = 0; i < 2; i++)
        rank[i] = pawl_str_equal(pairs[i]->key, PAWL_STR(PCG_STATE)) ? 0
                  : pawl_str_equal(pairs[i]->key, PAWL_STR(PCG_INC)) ? 1
                                                                     : 2;
    if (rank[0] != rank[1])
        return rank[0] - rank[1];
    return pawl_str_compare(pairs[0]->key, pairs[1]->key);
}

static void
print_count(struct pawl_json_writer *writer, struct pawl_str key, int64_t value)
{
    pawl_json_write_key(writer, key);
    pawl_json_write_i64(writer, value);
}

static void
print_text(struct pawl_json_writer *writer, struct pawl_str key, struct pawl_str text)
{
    pawl_json_write_key(writer, key);
    pawl_json_write_string(writer, text);
}

bool
pawl_trainer_state_print(struct pawl_trainer_document *document, struct pawl_buffer *out)
{
    const struct pawl_trainer_state *state = &document->state;
    struct pawl_json_writer writer;

    if (document->n_rng > 1)
        qsort(document->rng, document->n_rng, sizeof *document->rng, compare_rng_keys);
    pawl_json_write_begin(&writer, out, PAWL_JSON_INDENTED, PAWL_JSON_RAW);
    pawl_json_write_object(&writer);
    print_count(&writer, PAWL_STR("step"), state->step);
    print_count(&writer, PAWL_STR("tokens_seen"), state->tokens_seen);
    pawl_json_write_key(&writer, PAWL_STR("data_cursor"));
    pawl_json_write_object(&writer);
    print_count(&writer, PAWL_STR("shard"), state->cursor_shard);
    print_count(&writer, PAWL_STR("offset"), state->cursor_offset);
    pawl_json_write_object_end(&writer);
    pawl_json_write_key(&writer, PAWL_STR("rng"));
    pawl_json_write_object(&writer);
    for (size_t i = 0; i < document->n_rng; i++)
        print_text(&writer, document->rng[i].key, document->rng[i].value);
    pawl_json_write_object_end(&writer);
    pawl_json_write_key(&writer, PAWL_STR("lr"));
    pawl_json_write_f64(&writer, state->lr);
    print_text(&writer, PAWL_STR("config_sha256"), pawl_str_z(state->config_sha256));
    print_text(&writer, PAWL_STR("git_sha"), pawl_str_z(state->git_sha));
    if (state->has_loss_scale) {
        pawl_json_write_key(&writer, PAWL_STR("loss_scale"));
        pawl_json_write_f64(&writer, state->loss_scale);
    }
    pawl_json_write_object_end(&writer);
    (void)pawl_buffer_add_char(out, '\n');
    return pawl_buffer_ok(out);
}
