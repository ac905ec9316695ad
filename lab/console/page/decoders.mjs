// The page's decoders on known bytes and on hostile ones: in Node, without a browser.

import { DECODERS } from "../../../edge/console/page/decode.js";

const bytes = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16));
let [passed, failed] = [0, 0];

function row(kind, hex, wanted) {
  let seen;
  try {
    seen = DECODERS[kind].decode(bytes(hex));
  } catch (error) {
    seen = error;
  }
  const isRight = wanted === Error ? seen instanceof Error && !(seen instanceof RangeError) : seen === wanted;
  if (isRight) passed += 1;
  else failed += 1;
  if (!isRight) console.log(`FAILED ${kind} ${hex.slice(0, 40)}: ${seen}, not ${wanted}`);
}

row("base64", "0001ff", "AAH/");
for (const [hex, big, little] of [["ff", "-1", "-1"], ["0102", "258", "513"], ["7fffffff", "2147483647", "-129"], ["7fffffffffffffff", "9223372036854775807", "-129"]]) {
  row("int", hex, big);
  row("int-le", hex, little);
}
row("int", "010203", Error);
row("uuid", "00112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff");
row("uuid", "00", Error);

// Appendix A of RFC 8949.
for (const [hex, wanted] of [
  ["00", "0"], ["1818", "24"], ["1903e8", "1000"], ["1bffffffffffffffff", "18446744073709551615"], ["3bffffffffffffffff", "-18446744073709551616"], ["3863", "-100"],
  ["f90000", "0.0"], ["f98000", "-0.0"], ["f93c00", "1.0"], ["f97bff", "65504.0"], ["f90001", "5.960464477539063e-8"], ["fb3ff199999999999a", "1.1"], ["fa47c35000", "100000.0"], ["f97c00", "Infinity"],
  ["f4", "false"], ["f6", "null"], ["f7", "undefined"], ["f0", "simple(16)"], ["f8ff", "simple(255)"], ["c11a514b67b0", "tag(1,1363896240)"], ["4401020304", "h'01020304'"],
  ["6449455446", '"IETF"'], ["62c3bc", '"ü"'], ["83010203", "[1,2,3]"], ["a201020304", "{1:2,3:4}"], ["a26161016162820203", '{"a":1,"b":[2,3]}'], ["5f42010243030405ff", "(_ h'0102',h'030405')"],
  ["9f018202039f0405ffff", "[1,[2,3],[4,5]]"], ["bf61610161629f0203ffff", '{"a":1,"b":[2,3]}'],
]) row("cbor", hex, wanted);
for (const hex of ["", "18", "1c", "ff", "0000", "62c3", "61ff", "9bffffffffffffffff", "bbffffffffffffffff", "5bffffffffffffffff", "81".repeat(100), "9f".repeat(16384), "c0".repeat(16384), "9f01"]) row("cbor", hex, Error);

for (const [hex, wanted] of [
  ["07", "7"], ["ff", "-1"], ["c0", "null"], ["c2", "false"], ["c3", "true"], ["cc80", "128"], ["cfffffffffffffffff", "18446744073709551615"], ["d38000000000000000", "-9223372036854775808"],
  ["ca3fc00000", "1.5"], ["cb3ff199999999999a", "1.1"], ["a568656c6c6f", '"hello"'], ["d905" + "68656c6c6f", '"hello"'], ["c4020102", "h'0102'"], ["93010203", "[1,2,3]"], ["dc000101", "[1]"],
  ["82a7636f6d70616374c3a6736368656d6100", '{"compact":true,"schema":0}'], ["de0001a16101", '{"a":1}'], ["d6ff00000001", "ext(-1,h'00000001')"], ["c70201aabb", "ext(1,h'aabb')"],
]) row("msgpack", hex, wanted);
for (const hex of ["", "c1", "a5", "cc", "0000", "ddffffffff", "dfffffffff", "dbffffffff", "c6ffffffff", "91".repeat(100), "91".repeat(16384), "a1ff", "d6ff"]) row("msgpack", hex, Error);

// Whatever comes, it ends, with text or with a reason.
let state = 1;
const random = () => (state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 16;
for (let at = 0; at < 20_000; at += 1) {
  const data = Uint8Array.from({ length: random() % 60 }, () => random() & 255);
  for (const kind of ["msgpack", "cbor"]) {
    try {
      if (typeof DECODERS[kind].decode(data) !== "string") throw new RangeError("no text");
    } catch (error) {
      if (error instanceof RangeError) row(kind, [...data].map((byte) => byte.toString(16).padStart(2, "0")).join(""), "text");
    }
  }
}

console.log(`decoders: ${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
