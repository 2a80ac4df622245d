#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "trainer/train.h"

/* Which of the three a command line asks for, and which flags each takes. */
static const char *const raw_flags[] = { "steps" };
static const char *const shard_flags[] = { "max-steps", "batch",  "seq-len", "ckpt-every", "optimizer", "momentum",
                                           "keep",      "resume", "split",   "vocab",      "async",     "sums" };

static enum pawl_status
usage(struct pawl_error *err, const char *message)
{
    return fault(err, PAWL_ARGUMENT, "usage", NULL, "%s", message);
}

static const char *
first_given(const struct arguments *a, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (options_given(a, names[i]))
            return names[i];
    }
    return NULL;
}

static const char *
first_shard_flag(const struct arguments *a)
{
    const char *flag = first_given(a, shard_flags, sizeof shard_flags / sizeof shard_flags[0]);
    return flag != NULL || a->progress == NULL ? flag : "progress";
}

static enum pawl_status
refuse(struct pawl_error *err, const char *flag, const char *what)
{
    return fault(err, PAWL_ARGUMENT, "usage", NULL, "--%s is not for %s", flag, what);
}

static enum pawl_status
one_file(const struct arguments *a, const char *what, struct pawl_error *err)
{
    if (a->data.n == 1)
        return PAWL_OK;
    return fault(err, PAWL_ARGUMENT, "usage", NULL, "%s takes one file of --data, found %zu", what, a->data.n);
}

static enum pawl_status
run_counts(const struct arguments *a, struct output *out, struct pawl_error *err)
{
    const char *flag = first_shard_flag(a);
    if (flag == NULL)
        flag = first_given(a, raw_flags, 1);
    if (flag == NULL && options_given(a, "lr"))
        flag = "lr";
    if (flag != NULL)
        return refuse(err, flag, "--method counts");
    enum pawl_status st = one_file(a, "--method counts", err);
    if (st != PAWL_OK)
        return st;
    struct train_counts_options options = {
        .data = a->data.items[0], .out = a->out, .alpha = a->alpha, .threads = (unsigned)a->threads, .replace = a->force
    };
    return train_counts(&options, &out->talk, out->json, err);
}

static enum pawl_status
run_raw(const struct arguments *a, struct output *out, struct pawl_error *err)
{
    enum pawl_kind kind;
    enum pawl_status st = one_file(a, "--method autograd on a file of bytes", err);
    if (st != PAWL_OK)
        return st;
    /* A shard is known by its bytes; its header is no text to learn from. */
    if (pawl_kind_of(pawl_str_z(a->data.items[0]), &kind, NULL) == PAWL_OK &&
        (kind == PAWL_KIND_TOKEN_SHARD || kind == PAWL_KIND_TOKEN_DIR))
        return usage(err, "token shards need --max-steps, --batch, --seq-len and --ckpt-every");
    struct train_raw_options options = { .data = a->data.items[0],
                                         .out = a->out,
                                         .seed = a->seed,
                                         .steps = a->steps,
                                         .lr = a->lr,
                                         .threads = (unsigned)a->threads,
                                         .replace = a->force };
    return train_raw(&options, &out->talk, out->json, err);
}

static enum pawl_status
check_shard_flags(const struct arguments *a, struct pawl_error *err)
{
    static const char *const needed[] = { "max-steps", "batch", "seq-len", "ckpt-every" };
    for (size_t i = 0; i < 4; i++) {
        if (!options_given(a, needed[i]))
            return fault(
                err, PAWL_ARGUMENT, "usage", NULL,
                "--%s is missing: a run over token shards needs --max-steps, --batch, --seq-len and --ckpt-every",
                needed[i]);
    }
    const char *flag = first_given(a, raw_flags, 1);
    if (flag != NULL)
        return refuse(err, flag, "token shards: --max-steps is");
    bool is_sgd = a->optimizer != NULL && strcmp(a->optimizer, "sgd") == 0;
    if (options_given(a, "momentum") && !is_sgd)
        return usage(err, "--momentum is for --optimizer sgd");
    if (a->vocab != 0 && a->vocab != 256)
        return fault(err, PAWL_ARGUMENT, "usage", NULL,
                     "--vocab: a bigram of bytes has a vocabulary of 256, found %llu", (unsigned long long)a->vocab);
    return PAWL_OK;
}

static enum pawl_status
run_shards(const struct arguments *a, struct output *out, struct pawl_error *err)
{
    struct failpoints *failpoints = NULL;
    enum pawl_status st = check_shard_flags(a, err);
    if (st == PAWL_OK)
        st = failpoints_of_environment(&failpoints, err);
    if (st != PAWL_OK)
        return st;
    const char *unknown = failpoints_unknown(failpoints);
    if (unknown != NULL)
        talk_warning(&out->talk, "the failpoint %s is evaluated nowhere here", unknown);
    bool is_sgd = a->optimizer != NULL && strcmp(a->optimizer, "sgd") == 0;
    bool has_lr = options_given(a, "lr");
    struct train_shards_options options = { .data = a->data.items,
                                            .n_data = a->data.n,
                                            .out = a->out,
                                            .split = a->split,
                                            .max_steps = a->max_steps,
                                            .batch = a->batch,
                                            .seq_len = a->seq_len,
                                            .ckpt_every = a->ckpt_every,
                                            .has_seed = options_given(a, "seed"),
                                            .seed = a->seed,
                                            .optimizer = is_sgd ? OPTIMIZER_SGD : OPTIMIZER_ADAMW,
                                            .has_lr = has_lr,
                                            .lr = has_lr   ? a->lr
                                                  : is_sgd ? TRAIN_LR_SGD
                                                           : TRAIN_LR_ADAMW,
                                            .momentum = a->momentum,
                                            .keep = a->keep,
                                            .resume = options_given(a, "resume"),
                                            .resume_from = a->resume,
                                            .replace = a->force,
                                            .progress = a->progress,
                                            .async = a->async,
                                            .sums = a->with_sums };
    st = train_shards(&options, failpoints, &out->talk, out->json, err);
    failpoints_free(failpoints);
    return st;
}

static int
run(const struct arguments *a, struct output *out)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    enum pawl_status st;
    if (a->data.n == 0)
        st = usage(&err, "--data is missing: the file or the token shards to learn from");
    else if (a->out == NULL)
        st = usage(&err, "--out is missing: the directory for the model");
    else if (strcmp(a->method, "counts") == 0)
        st = run_counts(a, out, &err);
    else if (options_given(a, "alpha"))
        st = refuse(&err, "alpha", "--method autograd");
    else if (first_shard_flag(a) != NULL)
        st = run_shards(a, out, &err);
    else
        st = run_raw(a, out, &err);
    if (st == PAWL_OK) {
        out->is_json = true; /* the last line is the result, asked for or not */
        st = output_end(out, &err);
    }
    return st == PAWL_OK ? EXIT_FINE : output_error(out, NULL, &err);
}

static void
set_defaults(struct arguments *arguments)
{
    arguments->method = "counts";
    arguments->alpha = 1.0;
}

static const struct option options[] = {
    { "data", NULL, "PATH", NULL, "a file of bytes, or token shards: the words up to the next flag", OPTION_AT(data),
      OPTION_WORDS, 0, 0, 0 },
    { "out", NULL, "DIR", NULL, "the model directory; checkpoints go under DIR/ckpt", OPTION_AT(out), OPTION_TEXT, 0, 0,
      0 },
    { "method", NULL, "METHOD", "counts|autograd", "count the pairs (default), or learn by gradients",
      OPTION_AT(method), OPTION_CHOICE, 0, 0, 0 },
    { "alpha", NULL, "A", NULL, "counts: added to each count (default 1)", OPTION_AT(alpha), OPTION_REAL, 0, 0, 0 },
    { "seed", NULL, "S", NULL, "of the initial weights and the data's order (default 0); a resumed run has its own",
      OPTION_AT(seed), OPTION_U64, 0, 0, 0 },
    { "lr", NULL, "X", NULL, "the learning rate (a file: by the data; adamw: 0.03; sgd: 3)", OPTION_AT(lr), OPTION_REAL,
      0, 0, 0 },
    { "steps", NULL, "N", NULL, "a file: at most N steps of full-batch descent (default 20000)", OPTION_AT(steps),
      OPTION_U64, 1, 0, 0 },
    { "max-steps", NULL, "N", NULL, "shards: the run ends after step N", OPTION_AT(max_steps), OPTION_U64, 1, INT64_MAX,
      0 },
    { "batch", NULL, "B", NULL, "shards: windows of a step", OPTION_AT(batch), OPTION_U64, 1, UINT32_MAX, 0 },
    { "seq-len", NULL, "T", NULL, "shards: ids of a window", OPTION_AT(seq_len), OPTION_U64, 1, UINT32_MAX, 0 },
    { "ckpt-every", NULL, "K", NULL, "shards: a checkpoint every K steps, and at the end", OPTION_AT(ckpt_every),
      OPTION_U64, 1, INT64_MAX, 0 },
    { "optimizer", NULL, "NAME", "adamw|sgd", "shards: adamw (default, weight decay 0.01) or sgd", OPTION_AT(optimizer),
      OPTION_CHOICE, 0, 0, 0 },
    { "momentum", NULL, "M", NULL, "sgd: 0 (default) keeps no state", OPTION_AT(momentum), OPTION_REAL, 0, 0, -1 },
    { "keep", NULL, "K", NULL, "shards: only the K newest checkpoints stay (default: all)", OPTION_AT(keep), OPTION_I64,
      1, 0, 0 },
    { "resume", NULL, "DIR", NULL, "continue from DIR, a step or a root (default: the run's own)", OPTION_AT(resume),
      OPTION_MAYBE, 0, 0, 0 },
    { "progress", NULL, "FILE", NULL, "shards: append one JSON object per line for every step and checkpoint",
      OPTION_AT(progress), OPTION_TEXT, 0, 0, 0 },
    { "async", NULL, NULL, NULL, "shards: go on while a checkpoint is written; the same bytes", OPTION_AT(async),
      OPTION_SWITCH, 0, 0, 0 },
    { "sums", NULL, NULL, NULL, "shards: a checksum for each MiB of a checkpoint's tensors, in pawl.sums",
      OPTION_AT(with_sums), OPTION_SWITCH, 0, 0, 0 },
    OPTION_VOCAB,
    { "split", NULL, "NAME", NULL, "of a directory with a manifest: this split (default train)", OPTION_AT(split),
      OPTION_TEXT, 0, 0, 0 },
    { "threads", NULL, "N", NULL, "counting: at most N threads (default 0: what the machine has)", OPTION_AT(threads),
      OPTION_U64, 0, 1024, 0 },
    OPTION_FORCE,
};

const struct verb verb_train_bigram = {
    .name = "train bigram",
    .synopsis = "--data PATH... --out DIR [flags]",
    .summary = "train a bigram of bytes: by counts, or by gradients with checkpoints",
    .description =
        "counts: the log of the smoothed frequencies of every pair of bytes in a file.\n"
        "autograd on a file: full-batch gradient descent until the loss is that of the count model.\n"
        "autograd on token shards (--max-steps, --batch, --seq-len, --ckpt-every): mini-batches, with checkpoints that "
        "a\n"
        "killed run continues from to the same bits. SIGTERM or SIGINT: the step ends, is saved, exit status 130.\n"
        "The last line on stdout is one JSON object; DIR holds config.json and model.safetensors.\n"
        "PAWL_FAILPOINTS and TL_FAILPOINTS make it die on purpose: see pawl(1).\n",
    .examples = "  pawl train bigram --data corpus.txt --out model\n"
                "  pawl train bigram --method autograd --data corpus.txt --out learned\n"
                "  pawl train bigram --method autograd --data data/tok --out run --max-steps 1000 --batch 8 \\\n"
                "      --seq-len 128 --ckpt-every 100 --keep 3\n"
                "  pawl train bigram ... --resume\n",
    .table = TABLE(options),
    .min_paths = 0,
    .max_paths = 0,
    .path_name = "",
    .set_defaults = set_defaults,
    .run = run,
};
