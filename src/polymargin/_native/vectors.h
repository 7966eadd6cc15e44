/* Short vector loops of the working-set solvers, compiled for the processor at hand where the linker allows it. */
#ifndef POLYMARGIN_VECTORS_H
#define POLYMARGIN_VECTORS_H

#include <math.h>
#include <stddef.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define POLYMARGIN_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("finite-math-only")))
#else
#define POLYMARGIN_CLONES
#endif

/* gradient += step * row; then its extremes over the entries that their walls (0 or 1e300) leave open. */
POLYMARGIN_CLONES
static void add_and_scan(double *restrict gradient, const double *restrict row, double step,
                         const double *restrict wall_up, const double *restrict wall_down, ptrdiff_t m,
                         double *lowest, double *highest) {
    double low = 1e300, high = -1e300;
    for (ptrdiff_t r = 0; r < m; r++) {
        double g = gradient[r] + step * row[r];
        gradient[r] = g;
        double up = g + wall_up[r], down = g - wall_down[r];
        low = up < low ? up : low;
        high = down > high ? down : high;
    }
    *lowest = low;
    *highest = high;
}

/* gain[r] = (gradient[r] - wall[r] - start)_+^2 / (k_ii + k_rr - 2 k_ir), what a step against r is worth; their maximum. */
POLYMARGIN_CLONES
static double pair_gains(double *restrict gain, const double *restrict gradient, const double *restrict wall,
                         double start, double k_ii, const double *restrict diagonal, const double *restrict row,
                         double floor, ptrdiff_t m) {
    double most = 0.0;
    for (ptrdiff_t r = 0; r < m; r++) {
        double rise = gradient[r] - start - wall[r];
        double curvature = k_ii + diagonal[r] - 2.0 * row[r];
        rise = rise > 0.0 ? rise : 0.0;
        curvature = curvature > floor ? curvature : floor;
        double worth = rise * rise / curvature;
        gain[r] = worth;
        most = worth > most ? worth : most;
    }
    return most;
}

/* out = a + factor * b */
POLYMARGIN_CLONES
static void add_scaled(double *restrict out, const double *restrict a, double factor, const double *restrict b,
                       ptrdiff_t m) {
    for (ptrdiff_t r = 0; r < m; r++) out[r] = a[r] + factor * b[r];
}

/* out += factor * b */
POLYMARGIN_CLONES
static void accumulate(double *restrict out, double factor, const double *restrict b, ptrdiff_t m) {
    for (ptrdiff_t r = 0; r < m; r++) out[r] += factor * b[r];
}

/* the inner product of a and b */
POLYMARGIN_CLONES
static double inner(const double *restrict a, const double *restrict b, ptrdiff_t m) {
    double total = 0.0;
    for (ptrdiff_t r = 0; r < m; r++) total += a[r] * b[r];
    return total;
}

/* out += a0 r0 + a1 r1 + a2 r2 + a3 r3, for rows in double and in single precision */
POLYMARGIN_CLONES
static void add_four_doubles(double *restrict out, const double *restrict r0, const double *restrict r1,
                             const double *restrict r2, const double *restrict r3, const double *a, ptrdiff_t m) {
    double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    for (ptrdiff_t r = 0; r < m; r++) out[r] += a0 * r0[r] + a1 * r1[r] + a2 * r2[r] + a3 * r3[r];
}

POLYMARGIN_CLONES
static void add_four_floats(double *restrict out, const float *restrict r0, const float *restrict r1,
                            const float *restrict r2, const float *restrict r3, const double *a, ptrdiff_t m) {
    double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    for (ptrdiff_t r = 0; r < m; r++) out[r] += a0 * r0[r] + a1 * r1[r] + a2 * r2[r] + a3 * r3[r];
}

/* out_j = shift_j + <W_j, x> for k classes, four at a time, so that x is read seldom; and W_j += change_j x, where there is
 * a change: the number of these is returned. For rows x in double and in single precision. */
#define ROW_MEETS_CLASSES(number, name)                                                                              \
    POLYMARGIN_CLONES                                                                                                \
    static void score_by_class_##name(const number *restrict x, const double *restrict W, const double *restrict shift, \
                                      double *restrict out, ptrdiff_t m, int k) {                                    \
        int j = 0;                                                                                                   \
        for (; j + 4 <= k; j += 4, W += 4 * m) {                                                                     \
            double s0 = shift[j], s1 = shift[j + 1], s2 = shift[j + 2], s3 = shift[j + 3];                           \
            for (ptrdiff_t d = 0; d < m; d++) {                                                                      \
                double value = x[d];                                                                                 \
                s0 += W[d] * value, s1 += W[m + d] * value, s2 += W[2 * m + d] * value, s3 += W[3 * m + d] * value;  \
            }                                                                                                        \
            out[j] = s0, out[j + 1] = s1, out[j + 2] = s2, out[j + 3] = s3;                                          \
        }                                                                                                            \
        for (; j < k; j++, W += m) {                                                                                 \
            double score = shift[j];                                                                                 \
            for (ptrdiff_t d = 0; d < m; d++) score += W[d] * x[d];                                                  \
            out[j] = score;                                                                                          \
        }                                                                                                            \
    }                                                                                                                \
    POLYMARGIN_CLONES                                                                                                \
    static int change_by_class_##name(const number *restrict x, double *restrict W, const double *restrict change,   \
                                      ptrdiff_t m, int k) {                                                          \
        int changed = 0;                                                                                             \
        for (int j = 0; j < k; j++, W += m) {                                                                        \
            if (change[j] == 0.0) continue;                                                                          \
            changed++;                                                                                               \
            for (ptrdiff_t d = 0; d < m; d++) W[d] += change[j] * x[d];                                              \
        }                                                                                                            \
        return changed;                                                                                              \
    }

ROW_MEETS_CLASSES(double, doubles)
ROW_MEETS_CLASSES(float, floats)

/* Have lines of memory fetched that are needed soon: of rows in random order no processor foretells them. */
static inline void fetch(const void *first, ptrdiff_t bytes) {
#ifdef __GNUC__
    for (ptrdiff_t at = 0; at < bytes; at += 64) __builtin_prefetch((const char *)first + at);
#endif
}

/* The theta for which sum_m max(target[m] - theta, 0) = weight: Michelot's rising Newton steps. */
static double simplex_threshold(const double *restrict target, double weight, int k) {
    double total = 0.0;
    int count = k;
    for (int m = 0; m < k; m++) total += target[m];
    double theta = (total - weight) / k;
    for (int turn = 0; turn < k; turn++) {
        int previous = count;
        total = 0.0;
        count = 0;
        for (int m = 0; m < k; m++) {
            if (target[m] > theta) {
                total += target[m];
                count += 1;
            }
        }
        if (count == previous || count == 0) break;
        theta = (total - weight) / count;
    }
    return theta;
}

/* The smallest sum of an arc's weight and the potential where it ends. */
POLYMARGIN_CLONES
static double lowest_sum(const double *restrict weight, const double *restrict potential, ptrdiff_t k) {
    double low = 1e308;
    for (ptrdiff_t c = 0; c < k; c++) {
        double there = weight[c] + potential[c];
        low = there < low ? there : low;
    }
    return low;
}

/* The lowest rate of a move: the smallest up[r] - down[r]. */
POLYMARGIN_CLONES
static double lowest_rate(const double *restrict up, const double *restrict down, ptrdiff_t m) {
    double low = 1e300;
    for (ptrdiff_t r = 0; r < m; r++) {
        double rate = up[r] - down[r];
        low = rate < low ? rate : low;
    }
    return low;
}

/* up and down += step * (one - other), of which 1e300 takes no notice; how far an entry has fallen at most, and risen. */
POLYMARGIN_CLONES
static void exchange_rows(double *restrict up, double *restrict down, double step, const double *restrict one,
                          const double *restrict other, ptrdiff_t m, double *fallen, double *risen) {
    double low = 0.0, high = 0.0;
    for (ptrdiff_t r = 0; r < m; r++) {
        double change = step * (one[r] - other[r]);
        low = change < low ? change : low;
        high = change > high ? change : high;
        up[r] += change;
        down[r] += change;
    }
    *fallen = -low;
    *risen = high;
}

/* Distances by way of a class that is `first` away, where that is shorter than before. */
POLYMARGIN_CLONES
static void shorten(double *restrict distance, const double *restrict rest, double first, ptrdiff_t k) {
    for (ptrdiff_t c = 0; c < k; c++) {
        double there = first + rest[c];
        distance[c] = there < distance[c] ? there : distance[c];
    }
}

/* Solve S = sum_j clip(target_j + coupling S, 0, upper_j) - before, of a negative or a small coupling, by safeguarded
 * Newton steps: the right side minus S is piecewise linear and falls, so they end once they have found the piece. */
POLYMARGIN_CLONES
static double total_change(const double *restrict target, const double *restrict upper, double before,
                           double coupling, int k) {
    double S = 0.0, low = -1e300, high = 1e300;
    for (int turn = 0; turn < 100; turn++) {
        double total = 0.0, n_free = 0.0, shift = coupling * S;
        /* without branches, which no processor would foretell; a function of its own would not be inlined in clones */
        for (int j = 0; j < k; j++) {
            double u = target[j] + shift, bound = upper[j];
            double inside = u > 0.0 ? u : 0.0;
            inside = inside < bound ? inside : bound;
            total += inside;
            n_free += (u > 0.0 ? 1.0 : 0.0) * (u < bound ? 1.0 : 0.0);
        }
        double value = total - before - S;
        if (fabs(value) <= 1e-15 * (fabs(S) + before)) return S;
        if (value > 0.0) low = S;
        else high = S;
        double following = S + value / (1.0 - coupling * n_free);
        if (!(low < following && following < high)) {
            if (low < -1e299 || high > 1e299) return following;
            following = 0.5 * (low + high);
        }
        S = following;
    }
    return S;
}

/* The loss at the arguments g_j = offset + f_j - own of a box's hinges, its slack, and where its variables aim. */
POLYMARGIN_CLONES
static void aim_of_box(double start, double rate, const double *restrict f, const double *restrict u,
                       const double *restrict upper, double *restrict target, double *loss, double *slack,
                       double *before, int k) {
    double primal = 0.0, inside = 0.0, total = 0.0;
    for (int j = 0; j < k; j++) {
        double g = start + f[j], a = u[j];
        target[j] = a + rate * g;
        total += a;
        primal += upper[j] * (g > 0.0 ? g : 0.0);
        inside += a * g;
    }
    *loss = primal;
    *slack = primal - inside;
    *before = total;
}

/* The variables of a box that answer the arguments g_j = start + f_j of its hinges, and which of them are free; their
 * sum is returned. `sums` grows by the losses, these less <alpha, g>, and the squared ways from the centre over bounds. */
POLYMARGIN_CLONES
static double answer_of_box(double start, double rate, const double *restrict f, const double *restrict centre,
                            const double *restrict upper, double *restrict alpha, unsigned char *restrict free,
                            double *restrict sums, int k) {
    double total = 0.0, loss = 0.0, inside = 0.0, strayed = 0.0;
    for (int j = 0; j < k; j++) {
        double g = start + f[j], bound = upper[j];
        double a = centre[j] + rate * bound * g;
        a = a > 0.0 ? a : 0.0;
        a = a < bound ? a : bound;
        double way = a - centre[j];
        alpha[j] = a;
        total += a;
        inside += a * g;
        loss += bound * (g > 0.0 ? g : 0.0);
        strayed += way * way / (bound > 0.0 ? bound : 1.0);
    }
    for (int j = 0; j < k; j++) free[j] = (alpha[j] > 0.0) & (alpha[j] < upper[j]);
    sums[0] += loss;
    sums[1] += loss - inside;
    sums[2] += strayed;
    return total;
}

/* Take the variables of a box where they aim, moved by a shift; `change` becomes what they lose, its sum is returned. */
POLYMARGIN_CLONES
static double move_to_aim(double shift, const double *restrict target, const double *restrict upper,
                          double *restrict u, double *restrict change, double *size, int k) {
    double total = 0.0, moved = 0.0;
    for (int j = 0; j < k; j++) {
        double there = target[j] + shift, bound = upper[j];
        there = there > 0.0 ? there : 0.0;
        there = there < bound ? there : bound;
        double lost = u[j] - there;
        change[j] = lost;
        u[j] = there;
        total += lost;
        moved += fabs(lost);
    }
    *size = moved;
    return total;
}

#endif
