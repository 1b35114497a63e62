/** Sandboxes: their records, their actors' memory, and the secrets that each received. */
import * as Context from "effect/Context";
import type { SandboxCommand, SandboxEvent, SandboxSnapshot } from "../../machines/sandbox.ts";
import type { Memory, Stored } from "./journal.ts";
import type { GivenSecrets, OutdatedSandbox, Sandbox } from "./records.ts";

export class Sandboxes extends Context.Service<
  Sandboxes,
  {
    readonly memory: Memory<SandboxSnapshot, SandboxEvent, SandboxCommand>;
    /**
     * Opens the record with its first commands, and this boot's two tokens (by hash). Idempotent by id. Fenced by the
     * session (I18): if the session is not provisioning with this sandbox any more, nothing is written, so that a late
     * owner leaves no sandbox behind. A session has at most one sandbox that is provisioning or active (api.md 3).
     */
    readonly open: (request: {
      readonly id: string;
      readonly sessionId: string;
      readonly provider: string;
      readonly nodeId: string;
      readonly bootDeadlineAt: number;
      readonly snapshot: SandboxSnapshot;
      readonly commands: readonly SandboxCommand[];
      readonly serviceKeyHash: string;
      readonly cliToken: { readonly id: string; readonly hash: string };
      readonly now: number;
    }) => Stored<void>;
    readonly get: (id: string) => Stored<Sandbox | null>;
    readonly newestOf: (sessionId: string) => Stored<Sandbox | null>;
    /**
     * Records that a provisioning sandbox boots from now until its deadline. Called again for each attempt. False: it
     * is no longer provisioning.
     */
    readonly beginBoot: (
      id: string,
      boot: { readonly now: number; readonly deadlineAt: number },
    ) => Stored<boolean>;
    readonly unsettled: Stored<readonly string[]>;
    /** The ids among these that no record holds: the record does not exist, or has ended with no pending command. */
    readonly unheld: (ids: readonly string[]) => Stored<readonly string[]>;
    /**
     * Records the secrets that it receives, if `former` is the revision recorded before (null: none). False: not
     * recorded.
     */
    readonly noteSecrets: (id: string, former: number | null, given: GivenSecrets) => Stored<boolean>;
    /** Active sandboxes of this node whose recorded secrets have another revision than their project's. */
    readonly outdated: (nodeId: string) => Stored<readonly OutdatedSandbox[]>;
  }
>()("platform/store/Sandboxes") {}
