/* The optimizers against their formulas in long double, written a second time, and by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trainer/optimizer.h"

#define N 37
#define STEPS 60

struct reference {
    long double w[N], m[N], v[N];
};

static void
gradients(float *g, unsigned step)
{
    struct pawl_pcg32 rng;
    pawl_pcg32_seed(&rng, 77, step);
    for (size_t i = 0; i < N; i++)
        g[i] = i % 5 == 4 ? 0.0f : (float)(pawl_pcg32_normal(&rng) * pow(10.0, (double)(i % 7) - 3.0));
}

static void
begin(float *w, struct reference *r)
{
    for (size_t i = 0; i < N; i++) {
        w[i] = (float)i * 0.125f - 2.0f;
        r->w[i] = (long double)w[i];
        r->m[i] = r->v[i] = 0;
    }
}

/* The state is F32: what a step leaves is near the formula, a few roundings of F32 for each step. */
static void
check(const float *w, const struct reference *r, unsigned step)
{
    for (size_t i = 0; i < N; i++) {
        long double error = fabsl((long double)w[i] - r->w[i]);
        assert_true(error <= 2e-6L * (1.0L + fabsl(r->w[i])) * (step + 1));
    }
}

/* Goal: the bias correction counts from 1, the decay is decoupled, eps stands outside of the root. */
static void
test_adamw(void **state)
{
    (void)state;
    struct optimizer o;
    struct reference r;
    float w[N], g[N];
    struct pawl_error err = PAWL_ERROR_INIT;
    assert_int_equal(optimizer_init(&o, OPTIMIZER_ADAMW, N, 0.02, 0.0, &err), PAWL_OK);
    begin(w, &r);
    for (unsigned t = 1; t <= STEPS; t++) {
        gradients(g, t);
        optimizer_step(&o, w, g);
        for (size_t i = 0; i < N; i++) {
            long double gi = (long double)g[i];
            r.w[i] -= 0.02L * 0.01L * r.w[i];
            r.m[i] = 0.9L * r.m[i] + 0.1L * gi;
            r.v[i] = 0.999L * r.v[i] + 0.001L * gi * gi;
            long double m = r.m[i] / (1 - powl(0.9L, t)), v = r.v[i] / (1 - powl(0.999L, t));
            r.w[i] -= 0.02L * m / (sqrtl(v) + 1e-8L);
        }
        check(w, &r, t);
    }
    assert_int_equal(o.step, STEPS);
    assert_true(fabs(o.beta_powers[0] - pow(0.9, STEPS)) < 1e-15);
    assert_true(fabs(o.beta_powers[1] - pow(0.999, STEPS)) < 1e-13);
    optimizer_release(&o);
}

/* Goal: the first step of AdamW is lr times the sign, whatever the gradient's size; without a gradient only the decay acts. */
static void
test_adamw_first_step(void **state)
{
    (void)state;
    struct optimizer o;
    struct pawl_error err = PAWL_ERROR_INIT;
    float w[3] = { 1.0f, 1.0f, 1.0f }, g[3] = { 1e-3f, -1e4f, 0.0f };
    assert_int_equal(optimizer_init(&o, OPTIMIZER_ADAMW, 3, 0.5, 0.0, &err), PAWL_OK);
    optimizer_step(&o, w, g);
    assert_true(fabs((double)w[0] - (0.995 - 0.5)) < 1e-4);
    assert_true(fabs((double)w[1] - (0.995 + 0.5)) < 1e-6);
    assert_true(fabs((double)w[2] - 0.995) < 1e-7);
    optimizer_release(&o);
}

/* Goal: momentum multiplies the buffer, not the gradient; the first buffer is the gradient; plain SGD keeps no state. */
static void
test_sgd(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    for (unsigned kind = 0; kind < 2; kind++) {
        long double momentum = kind == 0 ? 0.0L : 0.9L;
        struct optimizer o;
        struct reference r;
        float w[N], g[N];
        assert_int_equal(optimizer_init(&o, OPTIMIZER_SGD, N, 0.001, (double)momentum, &err), PAWL_OK);
        assert_true((o.momentum_buffer != NULL) == (kind == 1));
        assert_null(o.exp_avg);
        begin(w, &r);
        for (unsigned t = 1; t <= STEPS; t++) {
            gradients(g, t);
            optimizer_step(&o, w, g);
            for (size_t i = 0; i < N; i++) {
                r.m[i] = momentum * r.m[i] + (long double)g[i];
                r.w[i] -= 0.001L * r.m[i];
            }
            check(w, &r, t);
        }
        assert_int_equal(o.step, STEPS);
        optimizer_release(&o);
    }
}

/* Goal: SGD on one weight, to the last digit: 1 - 0.5*2, then b = 0.5*2 + 1 = 2. */
static void
test_sgd_by_hand(void **state)
{
    (void)state;
    struct optimizer o;
    struct pawl_error err = PAWL_ERROR_INIT;
    float w = 1.0f, g = 2.0f;
    assert_int_equal(optimizer_init(&o, OPTIMIZER_SGD, 1, 0.5, 0.5, &err), PAWL_OK);
    optimizer_step(&o, &w, &g);
    assert_true(w == 0.0f);
    g = 1.0f;
    optimizer_step(&o, &w, &g);
    assert_true(w == -1.0f && o.momentum_buffer[0] == 2.0f);
    optimizer_release(&o);
}

/* Copy the whole of a state into another as a checkpoint does, tensors and numbers. */
static void
copy_state(struct optimizer *to, const struct optimizer *from)
{
    float *tensors[3][2] = { { to->exp_avg, from->exp_avg },
                             { to->exp_avg_sq, from->exp_avg_sq },
                             { to->momentum_buffer, from->momentum_buffer } };
    struct optimizer kept = *to;
    *to = *from;
    to->exp_avg = kept.exp_avg;
    to->exp_avg_sq = kept.exp_avg_sq;
    to->momentum_buffer = kept.momentum_buffer;
    for (size_t i = 0; i < 3; i++) {
        if (tensors[i][0] != NULL)
            memcpy(tensors[i][0], tensors[i][1], N * sizeof(float));
    }
}

/* Goal: nothing outside of the described state takes part: 20 steps, and 13 + copy of the state + 7, are the same bits. */
static void
test_state_is_whole(void **state)
{
    (void)state;
    struct pawl_error err = PAWL_ERROR_INIT;
    for (unsigned kind = 0; kind < 3; kind++) {
        enum optimizer_kind which = kind == 0 ? OPTIMIZER_ADAMW : OPTIMIZER_SGD;
        struct optimizer a, b;
        struct reference r;
        float w[N], x[N], g[N];
        assert_int_equal(optimizer_init(&a, which, N, 0.01, kind == 2 ? 0.9 : 0.0, &err), PAWL_OK);
        assert_int_equal(optimizer_init(&b, which, N, 0.01, kind == 2 ? 0.9 : 0.0, &err), PAWL_OK);
        begin(w, &r);
        for (unsigned t = 1; t <= 20; t++) {
            gradients(g, t);
            optimizer_step(&a, w, g);
            if (t > 13)
                optimizer_step(&b, x, g);
            if (t == 13) {
                copy_state(&b, &a);
                memcpy(x, w, sizeof x);
            }
        }
        assert_memory_equal(w, x, sizeof w);
        optimizer_release(&a);
        optimizer_release(&b);
    }
}

/*
 * Goal: what is described comes back from a checkpoint, every tensor and every number. Method: save a state, restore it into a
 * fresh optimizer, compare all fields. Leaving one out of the description fails here.
 */
static void
test_described_state_comes_back(void **state)
{
    (void)state;
    static const uint64_t shape[1] = { N };
    for (unsigned kind = 0; kind < 3; kind++) {
        enum optimizer_kind which = kind == 0 ? OPTIMIZER_ADAMW : OPTIMIZER_SGD;
        struct pawl_error err = PAWL_ERROR_INIT;
        struct pawl_state *described;
        struct pawl_run *run;
        struct optimizer o[2];
        struct reference r;
        float w[N], g[N];
        char root[32];
        int64_t step = 0;
        (void)snprintf(root, sizeof root, "optimizer-%u", kind);
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(optimizer_init(&o[i], which, N, i == 0 ? 0.01 : 5.0, kind == 2 ? 0.9 : 0.0, &err),
                             PAWL_OK);
            if (i == 0) {
                begin(w, &r);
                for (unsigned t = 1; t <= 5; t++) {
                    gradients(g, t);
                    optimizer_step(&o[0], w, g);
                }
            } else {
                o[1].weight_decay = o[1].eps = o[1].betas[0] = o[1].betas[1] = 0.5;
            }
            assert_int_equal(pawl_state_new(&described, &err), PAWL_OK);
            assert_int_equal(pawl_state_tensor(described, &PAWL_TENSOR(PAWL_MODEL, "p", PAWL_F32, w, N), &err),
                             PAWL_OK);
            assert_int_equal(optimizer_describe(&o[i], described, "p", shape, 1, &err), PAWL_OK);
            assert_int_equal(pawl_run_open_z(root, NULL, &run, &err), PAWL_OK);
            if (i == 0)
                assert_int_equal(pawl_run_save(run, described, 5, NULL, &err), PAWL_OK);
            else
                assert_int_equal(pawl_run_restore(run, described, &step, NULL, &err), PAWL_OK);
            assert_int_equal(pawl_run_close(run, &err), PAWL_OK);
            pawl_state_free(described);
        }
        assert_int_equal(step, 5);
        assert_int_equal(o[1].step, 5);
        assert_true(o[1].lr == 0.01 && o[1].weight_decay == o[0].weight_decay && o[1].momentum == o[0].momentum);
        if (which == OPTIMIZER_ADAMW) {
            assert_memory_equal(o[0].betas, o[1].betas, sizeof o[0].betas);
            assert_memory_equal(o[0].beta_powers, o[1].beta_powers, sizeof o[0].beta_powers);
            assert_true(o[1].eps == o[0].eps);
            assert_memory_equal(o[0].exp_avg, o[1].exp_avg, N * sizeof(float));
            assert_memory_equal(o[0].exp_avg_sq, o[1].exp_avg_sq, N * sizeof(float));
        }
        if (kind == 2)
            assert_memory_equal(o[0].momentum_buffer, o[1].momentum_buffer, N * sizeof(float));
        optimizer_release(&o[0]);
        optimizer_release(&o[1]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_adamw),
        cmocka_unit_test(test_adamw_first_step),
        cmocka_unit_test(test_sgd),
        cmocka_unit_test(test_sgd_by_hand),
        cmocka_unit_test(test_state_is_whole),
        cmocka_unit_test(test_described_state_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
