/** How what a fire came with lies in the table (api.md 4 "Ledger"): deflated where that is smaller, and not at all where it is too large. */
import { deflateRaw, inflateRawSync } from "node:zlib";
import type { StoredRequest } from "../store/ports/records.ts";

/** Larger than this, compressed, a body is not stored: such a fire cannot be fired again. */
const STORED_LIMIT_BYTES = 1024 * 1024;
/** Smaller bodies lie as they came: deflating takes longer than their bytes are worth. */
const DEFLATED_FROM_BYTES = 4096;
/** Every body that was accepted fits. */
const INFLATED_LIMIT_BYTES = 32 * 1024 * 1024;

/** Packs a body off the event loop where it is worth it; null: it is too large to be kept. */
export const packRequest = (
  body: Uint8Array,
  headers: StoredRequest["headers"],
  then: (request: StoredRequest | null) => void,
): void => {
  if (body.byteLength < DEFLATED_FROM_BYTES) return then({ body, encoding: "identity", headers });
  deflateRaw(body, { level: 1 }, (error, deflated) => {
    const isSmaller = error === null && deflated.byteLength < body.byteLength;
    const packed = isSmaller ? deflated : body;
    then(
      packed.byteLength > STORED_LIMIT_BYTES
        ? null
        : { body: packed, encoding: isSmaller ? "deflate" : "identity", headers },
    );
  });
};

/** The body as it came. */
export const unpackRequest = ({ body, encoding }: StoredRequest): Uint8Array =>
  encoding === "identity" ? body : inflateRawSync(body, { maxOutputLength: INFLATED_LIMIT_BYTES });
