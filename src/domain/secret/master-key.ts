/**
 * The database's records of the installation's master keys: a check value of the present key, and the former keys,
 * sealed under it. A former key no longer opens any stored value. It only derives the tokens of sandboxes that started
 * before it was replaced (services/keyring.ts).
 */
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import { keyCheck, type MasterKey, matchesKeyCheck, sealSecret, unsealSecret } from "./secret.ts";

/** A key that another one has replaced. */
export interface FormerKey extends MasterKey {
  /** Ms since the epoch. The tokens of sandboxes with older ids derive from this key. */
  readonly retiredAt: number;
}

/** The text that identifies a key: base64 for version 1, `<version>:<base64>` for later ones. */
export const keyCheckText = (key: MasterKey): string => {
  const check = Buffer.from(keyCheck(key)).toString("base64");
  return key.version === 1 ? check : `${key.version}:${check}`;
};

/** The key with its version. Null if these bytes are not the key that the text identifies. */
export const keyProvedBy = (bytes: Uint8Array, text: string): MasterKey | null => {
  const [, version = "1", check = ""] = /^(?:([1-9]\d{0,8}):)?([A-Za-z0-9+/=]+)$/.exec(text) ?? [];
  const key = { version: Number(version), bytes };
  return matchesKeyCheck(key, Buffer.from(check, "base64")) ? key : null;
};

const Kept = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ version: Schema.Int, retired_at: Schema.Int, sealed: Schema.String })),
);
const decodeKept = Schema.decodeUnknownSync(Kept);

const formerKeyPlace = (version: number) => ({ projectId: "", name: "former master key", version });

/** @param nonce makes 12 random bytes that were never used before. */
export const sealFormerKeys = (
  current: MasterKey,
  former: readonly FormerKey[],
  nonce: () => Uint8Array,
): string =>
  JSON.stringify(
    former.map(({ version, bytes, retiredAt }) => {
      const secret = { value: Buffer.from(bytes).toString("hex"), nonce: nonce() };
      const envelope = sealSecret({ current, former: [] }, formerKeyPlace(version), secret);
      return { version, retired_at: retiredAt, sealed: Buffer.from(envelope).toString("base64") };
    }),
  );

/** @throws if the text was not sealed under this key. That is a defect, because the key was checked before. */
export const openFormerKeys = (current: MasterKey, text: string): readonly FormerKey[] =>
  decodeKept(text).map(({ version, retired_at: retiredAt, sealed }) => {
    const formerKey = unsealSecret(
      { current, former: [] },
      formerKeyPlace(version),
      Buffer.from(sealed, "base64"),
    );
    if (Result.isFailure(formerKey))
      throw new Error(`a previous master key cannot be decrypted: ${formerKey.failure}`);
    return { version, bytes: Buffer.from(formerKey.success, "hex"), retiredAt };
  });
