// Norm, rope, activations, elementwise steps, and the passes over a row of logits, against f32x16.

namespace couplet::kernels::COUPLET_LEVEL {
namespace {

// x[i] = step(x[i], y[i])
template <class Step>
COUPLET_INLINE void update(float* x, const float* y, std::size_t count, Step step) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store(x + i, step(load(x + i), load(y + i)));
  if (i == count) return;
  const int rest = static_cast<int>(count - i);
  store_first(x + i, rest, step(load_first(x + i, rest), load_first(y + i, rest)));
}

}  // namespace

void rms_norm(const float* x, int x_stride, const float* weight, float eps, int rows, int cols, float* out,
              int out_stride) {
  const int whole = cols / kLanes * kLanes, rest = cols - whole;
  for (int r = 0; r < rows; ++r, x += x_stride, out += out_stride) {
    f32x16 sums = zero();
    for (int i = 0; i < whole; i += kLanes) sums = fma(load(x + i), load(x + i), sums);
    const f32x16 tail = load_first(x + whole, rest);
    sums = fma(tail, tail, sums);
    const float mean_square = join_sum(sums) / static_cast<float>(cols);
    const f32x16 inverse = broadcast(1.0f / square_root(mean_square + eps));
    for (int i = 0; i < whole; i += kLanes) store(out + i, (load(x + i) * inverse) * load(weight + i));
    store_first(out + whole, rest, (tail * inverse) * load_first(weight + whole, rest));
  }
}

void rope(float* x, int num_heads, int head_dim, const float* cos, const float* sin, int half) {
  const int whole = half / kLanes * kLanes, rest = half - whole;
  for (int h = 0; h < num_heads; ++h, x += head_dim) {
    float* upper = x + half;
    for (int i = 0; i < whole; i += kLanes) {
      const f32x16 a = load(x + i), b = load(upper + i), c = load(cos + i), s = load(sin + i);
      store(x + i, fnma(b, s, a * c));
      store(upper + i, fma(a, s, b * c));
    }
    const f32x16 a = load_first(x + whole, rest), b = load_first(upper + whole, rest);
    const f32x16 c = load_first(cos + whole, rest), s = load_first(sin + whole, rest);
    store_first(x + whole, rest, fnma(b, s, a * c));
    store_first(upper + whole, rest, fma(a, s, b * c));
  }
}

void silu_mul(float* gate, const float* up, std::size_t count) {
  update(gate, up, count, [](f32x16 g, f32x16 u) { return (g / (broadcast(1.0f) + exp(-g))) * u; });
}

void gelu_mul(float* gate, const float* up, std::size_t count) {
  update(gate, up, count, [](f32x16 g, f32x16 u) {
    const f32x16 k1 = broadcast(0x1.988454p0f), k2 = broadcast(0x1.2444f2p-4f);
    const f32x16 y = g * fma(k2, g * g, k1);
    return (g / (broadcast(1.0f) + exp(-y))) * u;
  });
}

void clamped_silu_mul(float* gate, const float* up, std::size_t count) {
  update(gate, up, count, [](f32x16 g, f32x16 u) {
    const f32x16 one = broadcast(1.0f), limit = broadcast(7.0f);
    g = min(limit, g);
    u = max(-limit, min(limit, u));
    return (g / (one + exp(-(broadcast(1.702f) * g)))) * (u + one);
  });
}

void soft_cap(float* x, float cap, std::size_t count) {
  update(x, x, count, [c = broadcast(cap)](f32x16 a, f32x16) { return soft_capped(a, c); });
}

void add(float* x, const float* y, std::size_t count) {
  update(x, y, count, [](f32x16 a, f32x16 b) { return a + b; });
}

void add_scaled(float* x, const float* y, float factor, std::size_t count) {
  update(x, y, count, [f = broadcast(factor)](f32x16 a, f32x16 b) { return fma(b, f, a); });
}

void scale(float* x, float factor, std::size_t count) {
  update(x, x, count, [f = broadcast(factor)](f32x16 a, f32x16) { return a * f; });
}

void add_bias(float* x, int x_stride, const float* bias, int rows, int cols) {
  for (int r = 0; r < rows; ++r, x += x_stride) add(x, bias, static_cast<std::size_t>(cols));
}

double sum_exp(const float* logits, int count, float max, double* weighted) {
  alignas(64) float terms[kLanes], differences[kLanes];
  double sum = 0, weighted_sum = 0;
  for (int i = 0; i < count; i += kLanes) {
    const int n = count - i < kLanes ? count - i : kLanes;
    const f32x16 difference = load_first(logits + i, n) - broadcast(max);
    store(terms, exp(difference));
    for (int lane = 0; lane < n; ++lane) sum = sum + static_cast<double>(terms[lane]);
    if (!weighted) continue;
    store(differences, difference);
    for (int lane = 0; lane < n; ++lane) {
      if (terms[lane] == 0.0f) continue;  // the difference may be infinite
      weighted_sum = weighted_sum + static_cast<double>(terms[lane]) * static_cast<double>(differences[lane]);
    }
  }
  if (weighted) *weighted = weighted_sum;
  return sum;
}

// Two passes: the maximum and whether all are finite, then the first place that equals the maximum.
int argmax(const float* logits, int count, bool* finite) {
  if (count <= 0) return *finite = true, 0;
  f32x16 best = broadcast(logits[0]), spoilt = zero();  // x * 0 is NaN where x is not finite, and NaN stays
  for (int i = 0; i < count; i += kLanes) {
    const int n = count - i < kLanes ? count - i : kLanes;
    const f32x16 x = load_first(logits + i, n);
    best = max(select(lanes_between(0, n), x, best), best);
    spoilt = fma(x, zero(), spoilt);
  }
  *finite = join_sum(spoilt) == 0.0f;
  if (!*finite) return 0;
  const f32x16 greatest = broadcast(join_max(best));
  for (int i = 0; i < count; i += kLanes) {
    const int n = count - i < kLanes ? count - i : kLanes;
    const unsigned found = bits_of(equal(load_first(logits + i, n), greatest)) & bits_of(lanes_between(0, n));
    if (found != 0) return i + __builtin_ctz(found);
  }
  return 0;
}

}  // namespace couplet::kernels::COUPLET_LEVEL
