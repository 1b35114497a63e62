/**
 * The keys of a sandbox that is not on this machine. All follow from one secret of the installation and the sandbox's id,
 * so a restarted service has them again, and no record contains one.
 */
import { hkdfSync } from "node:crypto";
import type { ChannelKey } from "./channel.ts";

const KEY_BYTES = 32;

/** The identities of the service at a sandbox's link (daemon/programs/link.cjs). */
export const START_IDENTITY = "start";
export const LINK_IDENTITY = "link";

export interface SandboxKeys {
  /** Opens the link until the sandbox has started, and is then worth nothing. Only this one is known to the cluster. */
  readonly start: ChannelKey;
  /** Opens the link from then on. */
  readonly link: ChannelKey;
  /** Opens the egress listener. It identifies the sandbox. */
  readonly egress: ChannelKey;
}

const MARK_BYTES = 8;

/** Says by which secret a sandbox's keys were made, and nothing about the secret. 16 hexadecimal digits. */
export const secretMark = (secret: Uint8Array): string =>
  Buffer.from(hkdfSync("sha256", secret, "", "platform sandbox mark", MARK_BYTES)).toString("hex");

/** @param secret of the installation, at least 32 random bytes */
export const sandboxKeys = (secret: Uint8Array, id: string): SandboxKeys => {
  const deriveKey = (purpose: string): Uint8Array =>
    new Uint8Array(hkdfSync("sha256", secret, id, `platform sandbox ${purpose}`, KEY_BYTES));
  return {
    start: { identity: START_IDENTITY, key: deriveKey("start") },
    link: { identity: LINK_IDENTITY, key: deriveKey("link") },
    egress: { identity: id, key: deriveKey("egress") },
  };
};
