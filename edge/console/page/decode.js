// Bytes of formats that need no schema, as text. Every number is written as it is stored: 64-bit integers as BigInt.
// A value is as long as its bytes at most, nested 64 levels at most; what is no such value is an Error with the reason.

const DEPTH_MAX = 64;

class Bytes {
  /** @param {Uint8Array} data */
  constructor(data) {
    this.view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    this.at = 0;
  }

  get left() {
    return this.view.byteLength - this.at;
  }

  /** Moves on. @param {number} count */
  step(count) {
    if (count > this.left) throw new Error(`${count} bytes are needed at byte ${this.at}, and ${this.left} are left`);
    const at = this.at;
    this.at += count;
    return at;
  }

  u8 = () => this.view.getUint8(this.step(1));
  u16 = () => this.view.getUint16(this.step(2));
  u32 = () => this.view.getUint32(this.step(4));
  u64 = () => this.view.getBigUint64(this.step(8));
  i8 = () => this.view.getInt8(this.step(1));
  i16 = () => this.view.getInt16(this.step(2));
  i32 = () => this.view.getInt32(this.step(4));
  i64 = () => this.view.getBigInt64(this.step(8));
  f32 = () => this.view.getFloat32(this.step(4));
  f64 = () => this.view.getFloat64(this.step(8));

  /** @param {number} count */
  slice(count) {
    const at = this.step(count);
    return new Uint8Array(this.view.buffer, this.view.byteOffset + at, count);
  }

  /** @param {number} count */
  text(count) {
    return JSON.stringify(new TextDecoder("utf-8", { fatal: true }).decode(this.slice(count)));
  }

  /** How many elements may come: each takes a byte. @param {number | bigint} count */
  count(count) {
    if (count > this.left) throw new Error(`${count} elements in ${this.left} bytes`);
    return Number(count);
  }
}

/** @param {Uint8Array} data */
const digits = (data) => [...data].map((byte) => byte.toString(16).padStart(2, "0")).join("");
/** JSON has no way to write bytes: as CBOR's own notation does. @param {Uint8Array} data */
const binary = (data) => `h'${digits(data)}'`;
/** A float that is whole keeps its point. @param {number} value */
const float = (value) => (Object.is(value, -0) ? "-0.0" : Number.isInteger(value) && Math.abs(value) < 1e21 ? `${value}.0` : String(value));
/** @param {number} count @param {() => string} one */
const listed = (count, one) => `[${Array.from({ length: count }, one).join(",")}]`;
/** @param {number} count @param {() => string} one */
const mapped = (count, one) => `{${Array.from({ length: count }, () => `${one()}:${one()}`).join(",")}}`;

/** @param {Bytes} b @param {number} depth @returns {string} */
function packed(b, depth) {
  if (depth > DEPTH_MAX) throw new Error(`nested more than ${DEPTH_MAX} levels`);
  const one = () => packed(b, depth + 1);
  const extension = (/** @type {number} */ count) => `ext(${b.i8()},${binary(b.slice(count))})`;
  const kind = b.u8();
  if (kind < 0x80) return String(kind);
  if (kind < 0x90) return mapped(b.count(kind & 15), one);
  if (kind < 0xa0) return listed(b.count(kind & 15), one);
  if (kind < 0xc0) return b.text(kind & 31);
  if (kind >= 0xe0) return String(kind - 256);
  switch (kind) {
    case 0xc0: return "null";
    case 0xc2: return "false";
    case 0xc3: return "true";
    case 0xc4: return binary(b.slice(b.u8()));
    case 0xc5: return binary(b.slice(b.u16()));
    case 0xc6: return binary(b.slice(b.u32()));
    case 0xc7: return extension(b.u8());
    case 0xc8: return extension(b.u16());
    case 0xc9: return extension(b.u32());
    case 0xca: return float(b.f32());
    case 0xcb: return float(b.f64());
    case 0xcc: return String(b.u8());
    case 0xcd: return String(b.u16());
    case 0xce: return String(b.u32());
    case 0xcf: return String(b.u64());
    case 0xd0: return String(b.i8());
    case 0xd1: return String(b.i16());
    case 0xd2: return String(b.i32());
    case 0xd3: return String(b.i64());
    case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8: return extension(1 << (kind - 0xd4));
    case 0xd9: return b.text(b.u8());
    case 0xda: return b.text(b.u16());
    case 0xdb: return b.text(b.u32());
    case 0xdc: return listed(b.count(b.u16()), one);
    case 0xdd: return listed(b.count(b.u32()), one);
    case 0xde: return mapped(b.count(b.u16()), one);
    case 0xdf: return mapped(b.count(b.u32()), one);
    default: throw new Error(`no value begins with byte 0x${kind.toString(16)}`);
  }
}

/** Half precision. @param {number} bits */
function half(bits) {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + fraction / 1024) * 2 ** (exponent - 15) : (fraction / 1024) * 2 ** -14);
}

const BREAK = 0xff;

/** @param {Bytes} b @param {number} depth @returns {string} */
function cbor(b, depth) {
  if (depth > DEPTH_MAX) throw new Error(`nested more than ${DEPTH_MAX} levels`);
  const one = () => cbor(b, depth + 1);
  const first = b.u8();
  const [major, short] = [first >> 5, first & 31];
  const isOpen = short === 31;
  if (short > 27 && !isOpen) throw new Error(`no value begins with byte 0x${first.toString(16)}`);
  if (major === 7) {
    switch (short) {
      case 20: return "false";
      case 21: return "true";
      case 22: return "null";
      case 23: return "undefined";
      case 24: return `simple(${b.u8()})`;
      case 25: return float(half(b.u16()));
      case 26: return float(b.f32());
      case 27: return float(b.f64());
      case 31: throw new Error("an end without a beginning");
      default: return `simple(${short})`;
    }
  }
  /** Until the end of one whose length is open. @param {() => string} part */
  const rest = (part) => {
    const parts = [];
    while (b.view.getUint8(b.step(1)) !== BREAK) {
      b.at -= 1;
      parts.push(part());
    }
    return parts;
  };
  if (isOpen) {
    if (major === 2 || major === 3) return `(_ ${rest(one).join(",")})`;
    if (major === 4) return `[${rest(one).join(",")}]`;
    if (major === 5) return `{${rest(() => `${one()}:${one()}`).join(",")}}`;
    throw new Error(`no value begins with byte 0x${first.toString(16)}`);
  }
  const wide = short < 24 ? BigInt(short) : [() => BigInt(b.u8()), () => BigInt(b.u16()), () => BigInt(b.u32()), b.u64][short - 24]();
  switch (major) {
    case 0: return String(wide);
    case 1: return String(-1n - wide);
    case 2: return binary(b.slice(b.count(wide)));
    case 3: return b.text(b.count(wide));
    case 4: return listed(b.count(wide), one);
    case 5: return mapped(b.count(wide), one);
    default: return `tag(${wide},${one()})`;
  }
}

/** @param {Uint8Array} data @param {(b: Bytes, depth: number) => string} value */
function whole(data, value) {
  const b = new Bytes(data);
  const text = value(b, 0);
  if (b.left) throw new Error(`${b.left} bytes follow the value`);
  return text;
}

/** @param {Uint8Array} data @param {boolean} isLittle */
function integer(data, isLittle) {
  const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
  switch (data.length) {
    case 1: return String(view.getInt8(0));
    case 2: return String(view.getInt16(0, isLittle));
    case 4: return String(view.getInt32(0, isLittle));
    case 8: return String(view.getBigInt64(0, isLittle));
    default: throw new Error(`an integer has 1, 2, 4 or 8 bytes, not ${data.length}`);
  }
}

/** @param {Uint8Array} data */
function uuid(data) {
  if (data.length !== 16) throw new Error(`a UUID has 16 bytes, not ${data.length}`);
  return digits(data).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

/** What each of them makes of bytes, by its name in the URL. @type {Record<string, {name: string, decode: (data: Uint8Array) => string}>} */
export const DECODERS = {
  base64: { name: "base64", decode: (data) => btoa(String.fromCharCode(...data)) },
  int: { name: "integer", decode: (data) => integer(data, false) },
  "int-le": { name: "integer, little-endian", decode: (data) => integer(data, true) },
  uuid: { name: "UUID", decode: uuid },
  msgpack: { name: "MessagePack", decode: (data) => whole(data, packed) },
  cbor: { name: "CBOR", decode: (data) => whole(data, cbor) },
};
