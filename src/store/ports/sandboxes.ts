/** Sandboxes, their actors' memory, and what each was given. */
import * as Context from "effect/Context";
import type { SandboxCommand, SandboxEvent, SandboxSnapshot } from "../../machines/sandbox.ts";
import type { Memory, Stored } from "./journal.ts";
import type { GivenSecrets, OutdatedSandbox, Sandbox } from "./records.ts";

export class Sandboxes extends Context.Service<
  Sandboxes,
  {
    readonly memory: Memory<SandboxSnapshot, SandboxEvent, SandboxCommand>;
    /**
     * Opens the record with its first commands, and the two tokens of this boot (by hash). Idempotent by id. Fenced by the
     * session (I18): nothing is written where it is not provisioning with just this sandbox (any more), so that an owner
     * that comes late leaves no sandbox that nobody ends. At most one of a session is provisioning or active (api.md 3).
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
    /** Notes that a provisioning one boots from now on, until its deadline. Again for each try. False: it boots no more. */
    readonly beginBoot: (
      id: string,
      boot: { readonly now: number; readonly deadlineAt: number },
    ) => Stored<boolean>;
    readonly unsettled: Stored<readonly string[]>;
    /** Those of these ids that no record holds: there is none, or it has ended and has no command left to do. */
    readonly unheld: (ids: readonly string[]) => Stored<readonly string[]>;
    /** Notes what it is given, where `former` is the revision noted before (null: none). False: it is not. */
    readonly noteSecrets: (id: string, former: number | null, given: GivenSecrets) => Stored<boolean>;
    /** Active ones of this node that were given another revision of the secrets than their project has now. */
    readonly outdated: (nodeId: string) => Stored<readonly OutdatedSandbox[]>;
  }
>()("platform/store/Sandboxes") {}
