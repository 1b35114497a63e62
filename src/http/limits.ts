/** Settings that handlers need, each with its unit in its name (config.ts has defaults and reasons). */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import type { SignInSettings } from "../domain/person/sign-in.ts";
import type { PreviewAddress } from "../domain/session/preview.ts";
import type { TerminalUsers } from "../domain/session/terminal.ts";
import type { DutyName } from "../services/duties.ts";

/** The node that answers. */
export class ThisNode extends Context.Service<
  ThisNode,
  {
    readonly id: string;
    /** The service's, from its package. */
    readonly version: string;
    /** How often each of its duties runs, ms. */
    readonly periods: ReadonlyMap<DutyName, number>;
    /** Free bytes on the data directory's disk. Null if the system does not say. */
    readonly diskFreeBytes: Effect.Effect<number | null>;
  }
>()("platform/http/ThisNode") {}

export class Limits extends Context.Service<
  Limits,
  {
    readonly bootTimeoutMs: number;
    readonly cloneCredentialTtlMs: number;
    readonly queueTtlMs: number;
    readonly queueMax: number;
    readonly saveTimeoutMs: number;
    readonly idleTimeoutMs: number;
    readonly requestTtlMs: number;
    /** PLATFORM_SIGN_UP. */
    readonly signIn: Pick<SignInSettings, "signUp">;
    /** PLATFORM_WEBHOOK_ALLOW_HOSTS, in lower case. */
    readonly webhookAllowHosts: readonly string[];
    /** PLATFORM_TERMINALS. */
    readonly terminals: TerminalUsers;
  }
>()("platform/http/Limits") {}

/** The service's addresses: for people and senders, and for sandboxes. */
export class Addresses extends Context.Service<
  Addresses,
  {
    readonly publicUrl: string;
    readonly internalUrl: string;
    readonly previews: PreviewAddress;
  }
>()("platform/http/Addresses") {}

/** Where people clone a project and push. */
export const repositoryUrl = ({ publicUrl }: { readonly publicUrl: string }, projectId: string): string =>
  `${publicUrl}/v1/git/${projectId}.git`;

/** Allowed sources of repository imports (api.md 2 "Repository sources"). */
export class ImportPolicy extends Context.Service<
  ImportPolicy,
  {
    /** PLATFORM_IMPORT_ROOTS. Empty: no local import. */
    readonly roots: readonly string[];
    /** PLATFORM_GIT_ALLOW_HOSTS. */
    readonly allowHosts: readonly string[];
    readonly dataDir: string;
  }
>()("platform/http/ImportPolicy") {}
