/**
 * Signing a program in that has no browser (RFC 8628, api.md 2): it shows a short code, and a person types the code into the
 * page. The program holds another, long code, with which it fetches the token.
 */
import { clientNetwork } from "./client-address.ts";

/** Names this kind of login in a request for its token (RFC 8628, 3.4). */
export const DEVICE_GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code";
/** How long a login waits for its person, in ms. */
export const LOGIN_LIFE_MS = 10 * 60 * 1000;
/** How often a program may ask, in ms. Asking earlier makes this longer. */
export const POLL_MS = 2000;
/** By how much one early request makes it longer, in ms (RFC 8628, 3.5). */
export const SLOWER_MS = 5000;
/** How much earlier than told a request may come, because clocks and networks are not exact, in ms. */
export const EARLY_MS = 500;
/** Logins that wait in the whole service. Beyond that, a new one ends another (`crowdedOut`). */
export const LOGINS_MAX = 1000;
/** Wrong codes of one person within `MISSES_MS`. Then no code of hers is looked at until that time is over. */
export const MISSES_MAX = 5;
export const MISSES_MS = 10 * 60 * 1000;
/** The longest name that a program gives itself, in characters. */
export const CLIENT_MAX = 100;

/** Without vowels, so that no code is a word, and without letters and digits that look alike. */
const ALPHABET = "BCDFGHJKLMNPQRSTVWXZ";
const LENGTH = 8;

/** @param bytes 16 random ones @returns a code for a person, 8 letters without the hyphen in which it is shown */
export const userCode = (bytes: Uint8Array): string => {
  const base = BigInt(ALPHABET.length);
  let number = BigInt(`0x${Buffer.from(bytes).toString("hex")}`);
  let code = "";
  for (; code.length < LENGTH; number /= base) code += ALPHABET.charAt(Number(number % base));
  return code;
};

/** As people read it: two groups of four. */
export const shownCode = (code: string): string => `${code.slice(0, LENGTH / 2)}-${code.slice(LENGTH / 2)}`;

/** What a person typed, in any case and with any separators. Null if it cannot be a code. */
export const readCode = (text: string): string | null => {
  const code = text.toUpperCase().replaceAll(/[\s\-_.]/g, "");
  return code.length === LENGTH && [...code].every((letter) => ALPHABET.includes(letter)) ? code : null;
};

/**
 * The logins that end so that a new one has room: each time the oldest of the network that has most. A stranger who begins
 * many ends her own, and those of other people wait on.
 *
 * @param waiting the oldest first
 */
export const crowdedOut = (
  waiting: readonly { readonly id: string; readonly address: string | null }[],
): readonly string[] => {
  const excess = waiting.length - LOGINS_MAX + 1;
  if (excess <= 0) return [];
  const byNetwork = Map.groupBy(waiting, ({ address }) => clientNetwork(address));
  return Array.from({ length: excess }, () => {
    const largest = [...byNetwork.values()].reduce((most, logins) =>
      logins.length > most.length ? logins : most,
    );
    return largest.shift()?.id ?? "";
  });
};
