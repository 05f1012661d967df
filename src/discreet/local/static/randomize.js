"use strict";
// The randomizers of discreet.local, drawn with whole numbers alone: from the same bytes this
// file and the Python library make the same report.  `bytes(count)` gives random bytes.
const randomizers = (() => {
  const WORD = 1n << 64n;

  function word(bytes) {
    const drawn = bytes(8);
    let found = 0n;
    for (let place = 7; place >= 0; place--) found = (found << 8n) | BigInt(drawn[place]);
    return found;
  }

  // A whole number below `bound`, each equally likely: what would tilt the odds is drawn again.
  function below(bytes, bound) {
    const usable = (WORD / bound) * bound;
    for (;;) {
      const found = word(bytes);
      if (found < usable) return found % bound;
    }
  }

  // 1 with probability over / under: 64 digits are compared, and more where they agree.
  function settle(bytes, drawn, over, under) {
    while (over > 0n) {
      const digits = (over * WORD) / under;
      if (drawn !== digits) return drawn < digits ? 1 : 0;
      over = over * WORD - digits * under;
      drawn = word(bytes);
    }
    return 0;
  }

  function coin(bytes, [over, under]) {
    return settle(bytes, word(bytes), BigInt(over), BigInt(under));
  }

  function respond(bytes, code, categories, truthful) {
    const kept = coin(bytes, truthful);
    if (categories === 2) return code ^ (1 - kept);
    const away = 1 + Number(below(bytes, BigInt(categories - 1)));
    return kept ? code : (code + away) % categories;
  }

  function packed(bits) {
    const found = new Uint8Array((bits.length + 7) >> 3);
    bits.forEach((bit, place) => { if (bit) found[place >> 3] |= 0x80 >> (place & 7); });
    return Array.from(found, (byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  // The inner product of the digits of a key and of an answer.
  function hashed(key, code, buckets, digits) {
    let [keys, codes, sum] = [key, code, 0];
    for (let place = 0; place < digits; place++) {
      sum += Number(keys % BigInt(buckets)) * (codes % buckets);
      keys /= BigInt(buckets);
      codes = Math.floor(codes / buckets);
    }
    return sum % buckets;
  }

  const step = (value, { lower, upper, steps }) => {
    const clipped = Math.min(Math.max(value, lower), upper);
    return BigInt(Math.floor(((clipped - lower) / (upper - lower)) * steps + 0.5));
  };

  function bit(bytes, at, { over, under, steps }) {
    const [a, b, s] = [BigInt(over), BigInt(under), BigInt(steps)];
    return below(bytes, (a + b) * s) < at * (a - b) + b * s ? 1n : 0n;
  }

  function near(bytes, at, { over, under, steps, width }) {
    const [a, b, s, w] = [BigInt(over), BigInt(under), BigInt(steps), BigInt(width)];
    const drawn = below(bytes, a * w + b * s);
    if (drawn < a * w) return at + drawn / a;
    const far = (drawn - a * w) / b;
    return far >= at ? far + w : far;
  }

  return {
    Direct: (bytes, code, { categories, truthful }) => respond(bytes, code, categories, truthful),

    Unary(bytes, code, { categories, inside, outside }) {
      const [over, under] = outside.map(BigInt);
      const digits = (over * WORD) / under;
      const drawn = Array.from({ length: categories }, () => word(bytes));
      const bits = drawn.map((one) =>
        one === digits ? settle(bytes, one, over, under) : Number(one < digits));
      bits[code] = coin(bytes, inside);
      return packed(bits);
    },

    SubsetSelection(bytes, code, { categories, size, inside }) {
      const listed = coin(bytes, inside);
      const others = categories - 1;
      const chosen = new Set();
      for (let last = others - size + listed; last < others; last++) {
        const drawn = Number(below(bytes, BigInt(last + 1)));
        chosen.add(chosen.has(drawn) ? last : drawn);
      }
      const bits = new Array(categories).fill(0);
      for (const other of chosen) bits[other >= code ? other + 1 : other] = 1;
      bits[code] = listed;
      return packed(bits);
    },

    LocalHashing(bytes, code, { buckets, digits, truthful }) {
      const key = below(bytes, BigInt(buckets) ** BigInt(digits));
      const found = respond(bytes, hashed(key, code, buckets, digits), buckets, truthful);
      return Number(key * BigInt(buckets)) + found;
    },

    HashedSets(bytes, code, { buckets, digits, size, inside }) {
      const key = below(bytes, BigInt(buckets) ** BigInt(digits));
      const named = coin(bytes, inside);
      const within = Number(below(bytes, BigInt(size)));
      const beyond = size + Number(below(bytes, BigInt(buckets - size)));
      const back = named ? within : beyond;
      const first = (hashed(key, code, buckets, digits) + buckets - back) % buckets;
      return Number(key * BigInt(buckets)) + first;
    },

    Hadamard(bytes, code, { columns, inside }) {
      const row = code + 1;
      const column = Number(below(bytes, BigInt(columns)));
      const plus = coin(bytes, inside);
      let ones = 0;
      for (let both = row & column; both; both &= both - 1) ones ^= 1;
      return ones === plus ? column ^ (row & -row) : column;
    },

    OneBitMean: (bytes, value, plan) => Number(bit(bytes, step(value, plan), plan)),

    PiecewiseMean: (bytes, value, plan) => Number(near(bytes, step(value, plan), plan)),

    HybridMean(bytes, value, plan) {
      const at = step(value, plan);
      const choice = coin(bytes, plan.share);
      const [one, number] = [bit(bytes, at, plan), near(bytes, at, plan)];
      return Number(choice ? number + 2n : one);
    },
  };
})();
if (typeof module !== "undefined") module.exports = randomizers;
