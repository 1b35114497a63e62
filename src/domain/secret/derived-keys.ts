/**
 * Keys that are derived from a master key by HKDF-SHA-256.
 *
 * A derivation takes longer than what is done with its key, and each call to a sandbox needs one. So the newest
 * derivations of each master key stay in memory. They are as secret as the master key, which is in memory, too, and they
 * leave memory with it.
 *
 * D1 The same master key and derivation always give the same key, kept or not.
 */
import { hkdfSync } from "node:crypto";

/** The use of a key. Another salt, purpose or length gives an unrelated key. */
export interface Derivation {
  readonly salt: string;
  readonly purpose: string;
  /** The key's length in bytes. */
  readonly bytes: number;
}

/** Of one master key: 100 bytes each. The oldest leaves first. */
const KEPT_MAX = 1_000;

const cache = new WeakMap<Uint8Array, Map<string, Uint8Array>>();

/** @returns the key. Callers share it: do not change its bytes, nor those of the master key. */
export const derivedKey = (
  master: Uint8Array,
  { salt, purpose, bytes }: Derivation,
): Readonly<Uint8Array> => {
  const keys = cache.get(master) ?? new Map<string, Uint8Array>();
  cache.set(master, keys);
  const name = JSON.stringify([salt, purpose, bytes]);
  const cachedKey = keys.get(name);
  if (cachedKey !== undefined) return cachedKey;
  const key = new Uint8Array(hkdfSync("sha256", master, salt, purpose, bytes));
  for (const oldest of keys.keys()) {
    if (keys.size < KEPT_MAX) break;
    keys.delete(oldest);
  }
  keys.set(name, key);
  return key;
};
