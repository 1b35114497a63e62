/**
 * Derives keys from the installation's master key, so that they need not be stored: the two tokens of a sandbox (spec
 * 5.2), the keys of project secrets, and the nodes' own keys. A token is derived from the sandbox's id. So a boot that
 * is performed again after a crash injects the same token, and another sandbox has another token.
 */
import * as Context from "effect/Context";
import * as Layer from "effect/Layer";
import { derivedKey } from "../domain/secret/derived-keys.ts";
import type { Keyring as SecretKeyring } from "../domain/secret/secret.ts";
import type { NodeKeys } from "../domain/service/node-credential.ts";
import { makeToken, TOKEN_BYTES, type TokenKind, uuidInstant } from "../domain/ids.ts";
import type { FormerKey } from "../domain/secret/master-key.ts";

/** The key that seals and derives, and its predecessors. */
export interface MasterKeys extends SecretKeyring {
  readonly former: readonly FormerKey[];
}

export class Keyring extends Context.Service<
  Keyring,
  {
    /** For sealing and unsealing project secrets (domain/secret/secret.ts). */
    readonly secrets: SecretKeyring;
    /** PLATFORM_TOKEN of a sandbox: its service key, which also signs user contexts for it. */
    readonly serviceKey: (sandboxId: string) => string;
    /** PLATFORM_CLI_TOKEN and PLATFORM_EXECUTOR_TOKEN of a sandbox. */
    readonly cliToken: (sandboxId: string) => string;
    /** The keys by which the nodes of one database authenticate each other (domain/service/node-credential.ts). */
    readonly nodes: NodeKeys;
  }
>()("platform/services/Keyring") {}

const NODE_KEY_BYTES = 32;

/**
 * A sandbox's tokens are derived from the master key that was in force when its id was made: a running sandbox keeps
 * its tokens when the key is replaced.
 */
export const keyringLayer = (secrets: MasterKeys): Layer.Layer<Keyring> => {
  const master = secrets.current.bytes;
  const former = secrets.former.toSorted((a, b) => a.retiredAt - b.retiredAt);
  const sandboxKey = (sandboxId: string): Uint8Array => {
    const madeAt = uuidInstant(sandboxId);
    return (
      (madeAt === null ? undefined : former.find(({ retiredAt }) => madeAt < retiredAt))?.bytes ?? master
    );
  };
  const derive = (kind: TokenKind, sandboxId: string): string =>
    makeToken(
      kind,
      derivedKey(sandboxKey(sandboxId), {
        salt: sandboxId,
        purpose: `platform/token/${kind}`,
        bytes: TOKEN_BYTES,
      }),
    );
  const nodeKey = (use: keyof NodeKeys): Uint8Array =>
    derivedKey(master, { salt: "", purpose: `platform/node/${use}`, bytes: NODE_KEY_BYTES });
  return Layer.succeed(Keyring, {
    secrets,
    serviceKey: (sandboxId) => derive("sbx", sandboxId),
    cliToken: (sandboxId) => derive("pat", sandboxId),
    nodes: { credential: nodeKey("credential"), seal: nodeKey("seal") },
  });
};
