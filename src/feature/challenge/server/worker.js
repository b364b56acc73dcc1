/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the number for which SHA-256(puzzle ":" number) begins with `difficulty` zero bits, at most
 * 26. SHA-256 (FIPS 180-4) is here because crypto.subtle is slow for one block at a time, and only
 * there on https. The puzzle fills the first block, so each try computes the second one only. */
"use strict";
const K = new Int32Array(64), H = new Int32Array(8), W = new Int32Array(64);

/* The constants are the first bits of the fractions of square and cube roots of primes. */
function fraction(x) {
  return ((x - Math.floor(x)) * 4294967296) | 0;
}
for (let n = 2, found = 0; found < 64; n++) {
  let prime = true;
  for (let d = 2; d * d <= n; d++) if (n % d === 0) prime = false;
  if (!prime) continue;
  if (found < 8) H[found] = fraction(Math.pow(n, 1 / 2));
  K[found++] = fraction(Math.pow(n, 1 / 3));
}

/* One block, W[0..16), on the state `from`, into `to`. */
function compress(from, to) {
  let a = from[0], b = from[1], c = from[2], d = from[3];
  let e = from[4], f = from[5], g = from[6], h = from[7];
  for (let i = 0; i < 64; i++) {
    if (i > 15) {
      const x = W[i - 15], y = W[i - 2];
      W[i] = (W[i - 16] + W[i - 7] +
        (((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3)) +
        (((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10))) | 0;
    }
    const s = (h + K[i] + W[i] + ((e & f) ^ (~e & g)) +
      (((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7)))) | 0;
    const t = ((((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10))) +
      ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + s) | 0;
    d = c; c = b; b = a; a = (s + t) | 0;
  }
  to[0] = from[0] + a; to[1] = from[1] + b; to[2] = from[2] + c; to[3] = from[3] + d;
  to[4] = from[4] + e; to[5] = from[5] + f; to[6] = from[6] + g; to[7] = from[7] + h;
}

function load(bytes) {
  for (let i = 0; i < 16; i++)
    W[i] = (bytes[4 * i] << 24) | (bytes[4 * i + 1] << 16) | (bytes[4 * i + 2] << 8) | bytes[4 * i + 3];
}

onmessage = (event) => {
  const text = event.data.puzzle + ":", shift = 32 - event.data.difficulty;
  const bytes = new Uint8Array(64), middle = new Int32Array(8), out = new Int32Array(8);
  for (let i = 0; i < 64; i++) bytes[i] = text.charCodeAt(i);
  load(bytes);
  compress(H, middle);
  for (let number = 0; ; number++) {
    const rest = text.slice(64) + number, bits = (64 + rest.length) * 8;
    bytes.fill(0);
    for (let i = 0; i < rest.length; i++) bytes[i] = rest.charCodeAt(i);
    bytes[rest.length] = 128;
    bytes[62] = bits >>> 8;
    bytes[63] = bits;
    load(bytes);
    compress(middle, out);
    if (out[0] >>> shift === 0) {
      postMessage({ solution: String(number) });
      return;
    }
    if (number % 65536 === 65535) postMessage({ tried: number });
  }
};
