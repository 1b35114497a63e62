/**
 * How the nodes of one database authenticate each other on their API ports (api.md 10). Both keys are derived from the
 * master key (services/keyring.ts), which only the nodes have.
 *
 *  D1 A credential is valid for one sender, one receiver, one method and one target, for a minute. An intercepted one
 *     opens nothing else, and nothing later.
 *  D2 It is compared in constant time, and it has exactly one spelling.
 *  D3 Messages between nodes, which may contain a sandbox's secrets, are sealed and bound to the credential of their
 *     request: an answer to another request does not open.
 */
import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from "node:crypto";

/** In lower case, as Node gives header names. */
export const NODE_HEADER = "x-platform-node";
/** The largest time difference between sender and receiver, including their clocks, ms. */
const LIFE_MS = 60_000;
const MAX_HEADER_LENGTH = 512;

export interface NodeKeys {
  readonly credential: Uint8Array;
  readonly seal: Uint8Array;
}

/** A request from one node to another. */
export interface NodeRequest {
  /** The receiver. */
  readonly to: string;
  readonly method: string;
  /** The path with its query, as sent. */
  readonly target: string;
}

interface Sent {
  readonly from: string;
  readonly at: number;
}

const requestMac = ({ to, method, target }: NodeRequest, { from, at }: Sent, key: Uint8Array): string =>
  createHmac("sha256", key)
    .update(JSON.stringify([from, at, to, method, target]))
    .digest("base64url");

/** The header's value. `at` is now, in ms since the epoch. */
export const signNodeRequest = (request: NodeRequest, stamp: Sent, keys: NodeKeys): string =>
  `${stamp.from}.${stamp.at}.${requestMac(request, stamp, keys.credential)}`;

/**
 * The node that sent a request to this node. Null if the sender is not a node.
 *
 * @param headers every value of the header, one element for each occurrence.
 */
export const verifyNodeRequest = (
  headers: readonly string[],
  request: NodeRequest & { readonly now: number },
  keys: NodeKeys,
): string | null => {
  const [header] = headers;
  if (header === undefined || headers.length > 1 || header.length > MAX_HEADER_LENGTH) return null;
  const [, from, written, mac] =
    /^([A-Za-z0-9-]{1,64})\.([1-9]\d{0,14})\.([A-Za-z0-9_-]{43})$/.exec(header) ?? [];
  if (from === undefined || written === undefined || mac === undefined) return null;
  const at = Number(written);
  const expected = requestMac(request, { from, at }, keys.credential);
  if (!timingSafeEqual(Buffer.from(mac, "ascii"), Buffer.from(expected, "ascii"))) return null;
  return Math.abs(request.now - at) <= LIFE_MS ? from : null;
};

const IV_BYTES = 12;
const TAG_BYTES = 16;

/** The context of a sealed message: the request's credential, and the direction. */
export interface Envelope {
  readonly credential: string;
  readonly way: "question" | "answer";
}

const associatedData = ({ credential, way }: Envelope): Buffer =>
  Buffer.from(`${way} ${credential}`, "ascii");

/** @param iv 12 random bytes, never the same twice. */
export const sealNodeMessage = (
  text: string,
  { envelope, iv }: { readonly envelope: Envelope; readonly iv: Uint8Array },
  { seal }: NodeKeys,
): Buffer => {
  const cipher = createCipheriv("aes-256-gcm", seal, iv).setAAD(associatedData(envelope));
  const body = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([iv, body, cipher.getAuthTag()]);
};

/** The opened message. Null if it was sealed for another context, or was changed. */
export const openNodeMessage = (bytes: Uint8Array, envelope: Envelope, { seal }: NodeKeys): string | null => {
  if (bytes.length < IV_BYTES + TAG_BYTES) return null;
  const end = bytes.length - TAG_BYTES;
  const decipher = createDecipheriv("aes-256-gcm", seal, bytes.subarray(0, IV_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(associatedData(envelope)).setAuthTag(bytes.subarray(end));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, end)), decipher.final()]).toString("utf8");
  } catch {
    return null;
  }
};
