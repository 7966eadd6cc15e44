"""The steepest cut of small complete graphs, by one maximum flow after another.

    max over sets S of   g(S) / F(S),   g(S) = sum_{k in S} g_k,   F(S) = sum_{k in S, l not in S} tau_kl,

for g that sum to zero and positive tau. For a guess lambda of the maximum the set of largest g(S) - lambda F(S)
is the source's side of a minimum cut between a source, with arcs g_k to the nodes of positive g, and a sink,
with arcs -g_k from the others, the capacities between nodes being lambda tau_kl. Its own ratio is the next guess
(Dinkelbach, 1967) and the last one if it is no larger: then the flow carries all of g, and no set has a larger
ratio. The first guess is the best of the k - 1 sets of largest g.

Flows are found by pushing excess towards the sink along labels that bound the distance to it from below
(Goldberg & Tarjan, A new approach to the maximum flow problem, 1988). Every push makes an excess or a residual
capacity exactly zero, in floating-point arithmetic too, so that their bound on the number of pushes holds.
"""

cdef double EPS = 2.220446049250313e-16


cdef void discharge(Py_ssize_t v, double[::1] excess, double[:, ::1] residual, double[::1] to_sink,
                    Py_ssize_t[::1] label) noexcept nogil:
    """Push the excess of node v on, lifting its label, until none is left or no way leads to the sink."""
    cdef Py_ssize_t k = label.shape[0], u, lowest
    cdef double amount
    while excess[v] > 0.0 and label[v] <= k:
        if label[v] == 1 and to_sink[v] > 0.0:
            amount = min(excess[v], to_sink[v])
            excess[v] -= amount
            to_sink[v] -= amount
        for u in range(k):
            if excess[v] <= 0.0:
                return
            if label[v] == label[u] + 1 and residual[v, u] > 0.0:
                amount = min(excess[v], residual[v, u])
                excess[v] -= amount
                residual[v, u] -= amount
                residual[u, v] += amount
                excess[u] += amount
        if excess[v] > 0.0:
            lowest = k
            for u in range(k):
                if residual[v, u] > 0.0 and label[u] < lowest:
                    lowest = label[u]
            label[v] = 1 if to_sink[v] > 0.0 else lowest + 1


cdef void flow(const double[::1] g, const double[:, ::1] tau, double ratio, double[::1] excess,
               double[:, ::1] residual, double[::1] to_sink, Py_ssize_t[::1] label) noexcept nogil:
    """Leave the residual capacities of a maximum flow; what it cannot carry stays as excess."""
    cdef Py_ssize_t k = g.shape[0], v, u
    cdef bint moved = True
    for v in range(k):
        excess[v] = max(g[v], 0.0)
        to_sink[v] = max(-g[v], 0.0)
        label[v] = 1 if to_sink[v] > 0.0 else 2
        for u in range(k):
            residual[v, u] = max(ratio, 0.0) * tau[v, u]  # equal values have ratios of rounding errors
    while moved:
        moved = False
        for v in range(k):
            if excess[v] > 0.0 and label[v] <= k:
                discharge(v, excess, residual, to_sink, label)
                moved = True


cdef void cut_off(const double[:, ::1] residual, const double[::1] to_sink, Py_ssize_t[::1] queue,
                  unsigned char[::1] inside) noexcept nogil:
    """Mark the nodes from which no residual capacity leads to the sink."""
    cdef Py_ssize_t k = to_sink.shape[0], v, u, head = 0, tail = 0
    for v in range(k):
        inside[v] = to_sink[v] <= 0.0
        if not inside[v]:
            queue[tail] = v
            tail += 1
    while head < tail:
        u = queue[head]
        head += 1
        for v in range(k):
            if inside[v] and residual[v, u] > 0.0:
                inside[v] = False
                queue[tail] = v
                tail += 1


cdef double slope(const double[::1] g, const double[:, ::1] tau, const unsigned char[::1] inside,
                  double* cost) noexcept nogil:
    """Return the ratio of a set, and write its cut to `cost`; zero where the set has none."""
    cdef Py_ssize_t k = g.shape[0], v, u
    cdef double total = 0.0
    cost[0] = 0.0
    for v in range(k):
        if inside[v]:
            total += g[v]
            for u in range(k):
                if not inside[u]:
                    cost[0] += tau[v, u]
    return total / cost[0] if cost[0] > 0.0 else 0.0


def steepest_cuts(const double[:, ::1] G, const Py_ssize_t[:, ::1] order, const double[:, ::1] weights,
                  double above, double[:, ::1] tau, double[:, ::1] residual, double[:, ::1] scratch,
                  Py_ssize_t[:, ::1] places, unsigned char[::1] trial, double[::1] ratios, double[::1] costs,
                  unsigned char[:, ::1] members) -> int:
    """Find the steepest cuts of m graphs of k nodes; return the number of flows.

    Parameters
    ----------
    G : (m, k) values, of zero sum in every row.
    order : (m, k) their descending order.
    weights : (m, k (k - 1) / 2) positive tau of the pairs (0, 1), (0, 2), ..., (1, 2), ...
    above : graphs of no ratio greater than this get it as their ratio, and no set; negative for a set of each.
    tau, residual : (k, k), scratch : (2, k), places : (2, k), trial : (k,) to work in.
    ratios, costs : (m,) the greatest ratio, and the cut of its set; written.
    members : (m, k) whether a node is in that set; written.
    """
    cdef Py_ssize_t m = G.shape[0], k = G.shape[1], row, v, u, pair, size
    cdef int flows = 0
    cdef double ratio, cost, least
    cdef double[::1] excess = scratch[0], to_sink = scratch[1]
    cdef Py_ssize_t[::1] label = places[0], queue = places[1]
    with nogil:
        for row in range(m):
            pair = 0
            for v in range(k):
                tau[v, v] = 0.0
                for u in range(v + 1, k):
                    tau[v, u] = tau[u, v] = weights[row, pair]
                    pair += 1
            ratios[row] = above
            costs[row] = 0.0
            trial[:] = 0
            members[row, :] = 0
            for size in range(k - 1):
                trial[order[row, size]] = 1
                ratio = slope(G[row], tau, trial, &cost)
                if ratio > ratios[row]:
                    ratios[row] = ratio
                    costs[row] = cost
                    members[row, :] = trial
            while True:
                least = ratios[row] * (1.0 + 4.0 * k * EPS)
                flow(G[row], tau, ratios[row], excess, residual, to_sink, label)
                flows += 1
                cut_off(residual, to_sink, queue, trial)
                ratio = slope(G[row], tau, trial, &cost)
                if not ratio > least:
                    break
                ratios[row] = ratio
                costs[row] = cost
                members[row, :] = trial
    return flows
