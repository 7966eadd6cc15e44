/* Short vector loops of the working-set solvers, compiled for the processor at hand where the linker allows it. */
#ifndef POLYMARGIN_VECTORS_H
#define POLYMARGIN_VECTORS_H

#include <math.h>
#include <stddef.h>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define POLYMARGIN_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), optimize("finite-math-only")))
/* A part of such functions: compiled with each of them, as it would not be by itself. */
#define POLYMARGIN_PART static inline __attribute__((always_inline))
#else
#define POLYMARGIN_CLONES
#define POLYMARGIN_PART static inline
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

/* Ask for what will soon be read: of what lies anywhere the processor would only begin to wait. What follows the
 * first lines it foresees by itself. */
static inline void fetch(const void *start, ptrdiff_t bytes) {
#if defined(__GNUC__)
    const char *line = (const char *)start;
    for (ptrdiff_t at = 0; at < bytes && at < 1024; at += 64) __builtin_prefetch(line + at);
#endif
}

/* the sum of the values */
POLYMARGIN_CLONES
static double sum_of(const double *values, ptrdiff_t m) {
    double total = 0.0;
    for (ptrdiff_t r = 0; r < m; r++) total += values[r];
    return total;
}

/* the inner product of a and b */
POLYMARGIN_CLONES
static double inner(const double *restrict a, const double *restrict b, ptrdiff_t m) {
    double total = 0.0;
    for (ptrdiff_t r = 0; r < m; r++) total += a[r] * b[r];
    return total;
}

/* out[c] = start[c] + the inner product of row c of W with x; four at a time, as a sum of its own waits for itself */
#define PRODUCTS_WITH(number, name)                                                                        \
    POLYMARGIN_CLONES                                                                                      \
    static void products_with_##name(const double *restrict W, const number *restrict x,                   \
                                     const double *restrict start, double *restrict out, ptrdiff_t p,      \
                                     ptrdiff_t k) {                                                        \
        ptrdiff_t c = 0;                                                                                   \
        for (; c + 3 < k; c += 4) {                                                                        \
            const double *w0 = W + c * p, *w1 = w0 + p, *w2 = w1 + p, *w3 = w2 + p;                        \
            double sum0 = start[c], sum1 = start[c + 1], sum2 = start[c + 2], sum3 = start[c + 3];         \
            for (ptrdiff_t d = 0; d < p; d++) {                                                            \
                double value = x[d];                                                                       \
                sum0 += w0[d] * value;                                                                     \
                sum1 += w1[d] * value;                                                                     \
                sum2 += w2[d] * value;                                                                     \
                sum3 += w3[d] * value;                                                                     \
            }                                                                                              \
            out[c] = sum0, out[c + 1] = sum1, out[c + 2] = sum2, out[c + 3] = sum3;                        \
        }                                                                                                  \
        for (; c < k; c++) {                                                                               \
            double sum = start[c];                                                                         \
            for (ptrdiff_t d = 0; d < p; d++) sum += W[c * p + d] * x[d];                                  \
            out[c] = sum;                                                                                  \
        }                                                                                                  \
    }

PRODUCTS_WITH(double, doubles)
PRODUCTS_WITH(float, floats)

/* W_c += change_c x for the classes that have a change: the number of these is returned. */
#define CHANGE_BY_CLASS(number, name)                                                                      \
    POLYMARGIN_CLONES                                                                                      \
    static int change_by_class_##name(const number *restrict x, double *restrict W,                        \
                                      const double *restrict change, ptrdiff_t m, int k) {                 \
        int changed = 0;                                                                                   \
        for (int c = 0; c < k; c++, W += m) {                                                              \
            if (change[c] == 0.0) continue;                                                                \
            changed++;                                                                                     \
            for (ptrdiff_t d = 0; d < m; d++) W[d] += change[c] * x[d];                                    \
        }                                                                                                  \
        return changed;                                                                                    \
    }

CHANGE_BY_CLASS(double, doubles)
CHANGE_BY_CLASS(float, floats)

/* What a row scores beside W, for rows taken from a centre: f = shift - along sums - of_centre. */
POLYMARGIN_CLONES
static void start_from_centre(const double *restrict shift, const double *restrict sums,
                              const double *restrict of_centre, double along, double *restrict f, int k) {
    for (int j = 0; j < k; j++) f[j] = shift[j] - along * sums[j] - of_centre[j];
}

/* Shift, sums and what the centre scores after a change of the coefficients of a row. */
POLYMARGIN_CLONES
static void follow(double *restrict shift, double *restrict sums, double *restrict of_centre, double tau, double along,
                   const double *restrict change, int k) {
    for (int j = 0; j < k; j++) {
        shift[j] += tau * change[j];
        sums[j] += change[j];
        of_centre[j] += along * change[j];
    }
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

/* The sum of the targets whose keys are above a bound, and their number, without branches: the processor would
 * foretell none of them. */
POLYMARGIN_PART double sum_above(const double *restrict target, const double *restrict key, double bound, int k,
                               double *number) {
    double total = 0.0, count = 0.0;
    for (int m = 0; m < k; m++) {
        total += key[m] > bound ? target[m] : 0.0;
        count += key[m] > bound ? 1.0 : 0.0;
    }
    *number = count;
    return total;
}

/* The theta for which sum_m max(target[m] - theta, 0) = weight, by Newton's steps from a set that is nearly that of
 * the targets above theta, given by its sum and number: the second theta is no more than the root, and from there
 * they rise until the set is found again. */
POLYMARGIN_PART double threshold_from(const double *restrict target, double weight, double total, double count, int k) {
    if (count == 0.0) return 0.0;  /* a simplex without weight, of targets that are not above zero */
    double theta = (total - weight) / count;
    for (int turn = 0; turn < k + 2; turn++) {
        double above, number;
        above = sum_above(target, target, theta, k, &number);
        if (number == 0.0 || (number == count && above == total)) break;
        total = above, count = number;
        theta = (total - weight) / count;
    }
    return theta;
}

/* The theta, where alpha, a point of the simplex that is above zero somewhere, is nearly the answer. */
POLYMARGIN_CLONES
static double threshold_near(const double *restrict target, const double *restrict alpha, double weight, int k) {
    double count, total = sum_above(target, alpha, 0.0, k, &count);
    return threshold_from(target, weight, total, count, k);
}

/* The theta, where nothing is known. */
POLYMARGIN_CLONES
static double simplex_threshold(const double *restrict target, double weight, int k) {
    double largest = target[0], count, total;
    for (int m = 1; m < k; m++) largest = target[m] > largest ? target[m] : largest;
    total = sum_above(target, target, largest - weight, k, &count);
    return count == 0.0 ? largest : threshold_from(target, weight, total, count, k);
}

/* The largest margin of an example, its mean under alpha, and where the variables of its simplex aim, but for what they
 * have in common: beside steps along the whole margins of a short row, alpha would be lost. */
POLYMARGIN_CLONES
static double aim_of_simplex(double offset, int anchor, double rate, const double *restrict f,
                             const double *restrict alpha, double *restrict target, double *mean, int k) {
    double start = offset - f[anchor], best = 0.0, inside = 0.0;
    for (int m = 0; m < k; m++) {
        double g = m == anchor ? 0.0 : start + f[m];
        target[m] = g;
        best = g > best ? g : best;
        inside += alpha[m] * g;
    }
    for (int m = 0; m < k; m++) target[m] = alpha[m] + rate * (target[m] - best);
    *mean = inside;
    return best;
}

/* Take the variables of a simplex to max(target - theta, 0), those that are there to rounding excepted; `change`
 * becomes what they lose, its size is returned. */
POLYMARGIN_CLONES
static double move_to_threshold(double theta, double rounding, const double *restrict target, double *restrict alpha,
                                double *restrict change, int k) {
    double moved = 0.0;
    for (int m = 0; m < k; m++) {
        double there = target[m] > theta ? target[m] - theta : 0.0, lost = alpha[m] - there, size = fabs(lost);
        change[m] = size > rounding ? lost : 0.0;
        alpha[m] = size > rounding ? there : alpha[m];
        moved += size > rounding ? size : 0.0;
    }
    return moved;
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

/* The rows that move from one class to another at a rate of no more than `forth`, or back of no more than `back`: few
 * in most stretches, so that these are looked at as a whole first. One more than the rows are has its place. */
POLYMARGIN_CLONES
static ptrdiff_t rows_below(const double *restrict up, const double *restrict down, const double *restrict up_other,
                            const double *restrict down_other, ptrdiff_t m, double forth, double back,
                            int *restrict rows) {
    ptrdiff_t count = 0;
    double above[16];
    for (ptrdiff_t first = 0; first < m; first += 16) {
        ptrdiff_t size = first + 16 < m ? 16 : m - first;
        double least = 1e300;
        for (ptrdiff_t s = 0; s < size; s++) {
            double one = up[first + s] - down[first + s] - forth;
            double other = up_other[first + s] - down_other[first + s] - back;
            above[s] = one < other ? one : other;
            least = above[s] < least ? above[s] : least;
        }
        if (least > 0.0) continue;
        for (ptrdiff_t s = 0; s < size; s++) {
            rows[count] = (int)(first + s);
            count += above[s] <= 0.0;
        }
    }
    return count;
}

/* How some rows move from one class to another, up[r] - down[r], and back: at which rates, 1e300 for none, and how far. */
POLYMARGIN_CLONES
static void moves_between(const double *restrict up, const double *restrict down, const double *restrict up_other,
                          const double *restrict down_other, const double *restrict coefficient,
                          const double *restrict lower, const double *restrict upper,
                          const double *restrict coefficient_other, const double *restrict lower_other,
                          const double *restrict upper_other, const int *restrict rows, ptrdiff_t q,
                          double *restrict forth, double *restrict back, double *restrict most_forth,
                          double *restrict most_back) {
    for (ptrdiff_t s = 0; s < q; s++) {
        int r = rows[s];
        double gain = upper[r] - coefficient[r], other_gain = upper_other[r] - coefficient_other[r];
        double loss = coefficient[r] - lower[r], other_loss = coefficient_other[r] - lower_other[r];
        double rate = up[r] - down_other[r], rate_back = down[r] - up_other[r];
        forth[s] = rate < 1e299 ? rate : 1e300;
        back[s] = rate_back > -1e299 ? rate_back : -1e300;
        most_forth[s] = gain < other_loss ? gain : other_loss;
        most_back[s] = loss < other_gain ? -loss : -other_gain;
    }
}

/* Some entries of a row. */
POLYMARGIN_CLONES
static void pick(double *restrict out, const double *restrict row, const int *restrict places, ptrdiff_t q) {
    for (ptrdiff_t s = 0; s < q; s++) out[s] = row[places[s]];
}

/* Rates changed by step * (one - other), on top of what they began with; where the lowest of them is then, and how low.
 * The stretch that it lies in is found first. */
POLYMARGIN_CLONES
static ptrdiff_t shift_and_seek(double *restrict shift, const double *restrict start, double step,
                                const double *restrict one, const double *restrict other, ptrdiff_t q, double *low) {
    double lowest = 1e300;
    ptrdiff_t from = 0, place;
    for (ptrdiff_t first = 0; first < q; first += 64) {
        ptrdiff_t end = first + 64 < q ? first + 64 : q;
        double least = 1e300;
        for (ptrdiff_t s = first; s < end; s++) {
            double by = shift[s] + step * (one[s] - other[s]), rate = start[s] + by;
            shift[s] = by;
            least = rate < least ? rate : least;
        }
        if (least < lowest) lowest = least, from = first;
    }
    *low = lowest;
    for (place = from; place < q && start[place] + shift[place] != lowest; place++) {}
    return place;
}

/* The place of the largest (rate - low)^2 / curvature among the rates, of which each is a sum of two, that are above
 * `low` by more than a threshold; below zero where none is. */
POLYMARGIN_CLONES
static ptrdiff_t best_partner(const double *restrict start, const double *restrict shift, double low, double k_ii,
                              const double *restrict diagonal, const double *restrict row, double floor,
                              double threshold, ptrdiff_t q) {
    double best = 0.0, gain[64];
    ptrdiff_t place = -1;
    for (ptrdiff_t first = 0; first < q; first += 64) {
        ptrdiff_t size = first + 64 < q ? 64 : q - first;
        double most = 0.0;
        for (ptrdiff_t s = 0; s < size; s++) {
            double slope = start[first + s] + shift[first + s] - low;
            double curvature = k_ii + diagonal[first + s] - 2.0 * row[first + s];
            curvature = curvature > floor ? curvature : floor;
            slope = slope > threshold ? slope : 0.0;
            gain[s] = slope * slope / curvature;
            most = gain[s] > most ? gain[s] : most;
        }
        if (most > best) {
            best = most;
            place = first;
            while (gain[place - first] != most) place++;
        }
    }
    return place;
}

/* A change of the gradient of one class, and of another the other way; how far it goes down at most, and up. */
POLYMARGIN_CLONES
static void shift_rows(double *restrict up, double *restrict down, double *restrict up_other,
                       double *restrict down_other, const double *restrict change, ptrdiff_t m, double *fallen,
                       double *risen) {
    double low = 0.0, high = 0.0;
    for (ptrdiff_t r = 0; r < m; r++) {
        double by = change[r];
        low = by < low ? by : low;
        high = by > high ? by : high;
        up[r] += by;
        down[r] += by;
        up_other[r] -= by;
        down_other[r] -= by;
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

/* The sum of targets, moved by a shift, between zero and their upper bounds, and how many are strictly between,
 * without branches: the processor would foretell none of them. */
POLYMARGIN_PART double clipped_sum(const double *restrict target, const double *restrict upper, double shift, int k,
                          double *n_free) {
    double total = 0.0, free = 0.0;
    for (int j = 0; j < k; j++) {
        double u = target[j] + shift, bound = upper[j];
        double inside = u > 0.0 ? u : 0.0;
        inside = inside < bound ? inside : bound;
        total += inside;
        free += (u > 0.0 ? 1.0 : 0.0) * (u < bound ? 1.0 : 0.0);
    }
    *n_free = free;
    return total;
}

/* Solve S = sum_j clip(target_j + coupling S, 0, upper_j) - before, of a negative or a small coupling, by safeguarded
 * Newton steps: the right side minus S is piecewise linear and falls, so they end once they have found the piece. */
POLYMARGIN_CLONES
static double total_change(const double *restrict target, const double *restrict upper, double before,
                           double coupling, int k) {
    double S = 0.0, low = -1e300, high = 1e300;
    for (int turn = 0; turn < 100; turn++) {
        double n_free, value = clipped_sum(target, upper, coupling * S, k, &n_free) - before - S;
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

/* The variables of a simplex that answer the margins of its example, and which of them are free; R loses them but for
 * what the anchor's coefficient gains. `sums` grows as for a box. */
POLYMARGIN_CLONES
static void answer_of_simplex(double offset, int anchor, double width, double weight, const double *restrict f,
                              const double *restrict centre, double *restrict alpha, unsigned char *restrict free,
                              double *restrict R, double *restrict sums, int k) {
    double start = offset - f[anchor], rate = weight / width, best = 0.0, inside = 0.0, strayed = 0.0, count;
    for (int m = 0; m < k; m++) {
        double g = m == anchor ? 0.0 : start + f[m];
        best = g > best ? g : best;
    }
    for (int m = 0; m < k; m++) alpha[m] = centre[m] + rate * ((m == anchor ? 0.0 : start + f[m]) - best);
    double total = sum_above(alpha, centre, 0.0, k, &count);
    double theta = threshold_from(alpha, weight, total, count, k);
    for (int m = 0; m < k; m++) {
        double g = m == anchor ? 0.0 : start + f[m];
        double a = alpha[m] > theta ? alpha[m] - theta : 0.0, way = a - centre[m];
        alpha[m] = a;
        inside += a * g;
        strayed += way * way;
        R[m] -= a;
    }
    for (int m = 0; m < k; m++) free[m] = alpha[m] > 0.0;
    R[anchor] += weight;
    sums[0] += weight * best;
    sums[1] += weight * best - inside;
    sums[2] += strayed / (weight > 0.0 ? weight : 1.0);
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
