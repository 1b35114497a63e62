/**
 * How the table stores a fire's request (api.md 4 "Ledger"): deflated if that is smaller, and not at all if it is too
 * large.
 */
import { deflateRaw, inflateRawSync } from "node:zlib";
import type { StoredRequest } from "../../store/ports/triggers/fires.ts";

/** A body that is larger than this, compressed, is not stored. The fire cannot be replayed. */
const STORED_LIMIT_BYTES = 1024 * 1024;
/** Smaller bodies are stored as they came: deflating them costs more time than it saves bytes. */
const DEFLATED_FROM_BYTES = 4096;
/** Every accepted body fits. */
const INFLATED_LIMIT_BYTES = 32 * 1024 * 1024;

/** Packs a body, off the event loop if it is large. Null if it is too large to be kept. */
export const packRequest = (
  body: Uint8Array,
  headers: StoredRequest["headers"],
  then: (request: StoredRequest | null) => void,
): void => {
  if (body.byteLength < DEFLATED_FROM_BYTES) return then({ body, encoding: "identity", headers });
  deflateRaw(body, { level: 1 }, (error, bytes) => {
    const isSmaller = error === null && bytes.byteLength < body.byteLength;
    const content = isSmaller ? bytes : body;
    then(
      content.byteLength > STORED_LIMIT_BYTES
        ? null
        : { body: content, encoding: isSmaller ? "deflate" : "identity", headers },
    );
  });
};

/** The body as it came. */
export const unpackRequest = ({ body, encoding }: StoredRequest): Uint8Array =>
  encoding === "identity" ? body : inflateRawSync(body, { maxOutputLength: INFLATED_LIMIT_BYTES });
