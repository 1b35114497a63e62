/**
 * What the tags of base images stand for, as registries said last. All projects share it: a tag is looked up once for all.
 *
 *  B1 A tag that is due is taken by one node. Another takes it again only if that node has not answered in time.
 *  B2 A later look is never replaced by an earlier one.
 */
import * as Context from "effect/Context";
import type { Stored } from "../journal.ts";

export interface EnvironmentBase {
  /** With registry and tag. */
  readonly reference: string;
  /** Null if no registry has answered yet. */
  readonly digest: string | null;
  /** When the registry said so, ms. */
  readonly lookedUpAt: number | null;
  readonly triedAt: number;
  /** Tries since the last answer. */
  readonly failures: number;
  /** Why the last try failed: a sentence for people. */
  readonly problem: string | null;
  /** When it is looked up again, ms. */
  readonly dueAt: number;
}

export class EnvironmentBases extends Context.Service<
  EnvironmentBases,
  {
    /** Those that are known, in the order of their references. */
    readonly get: (references: readonly string[]) => Stored<readonly EnvironmentBase[]>;
    /** Takes references that are due or unknown, for a look that ends before `until`. */
    readonly take: (request: {
      readonly references: readonly string[];
      readonly now: number;
      readonly until: number;
      readonly limit: number;
    }) => Stored<readonly Pick<EnvironmentBase, "reference" | "failures">[]>;
    /** A registry has answered at `now`. */
    readonly found: (answer: {
      readonly reference: string;
      readonly digest: string;
      readonly now: number;
      readonly dueAt: number;
    }) => Stored<void>;
    /** A registry has not answered at `now`. What it said before stays. */
    readonly missed: (miss: {
      readonly reference: string;
      readonly problem: string;
      readonly now: number;
      readonly dueAt: number;
    }) => Stored<void>;
    /** Forgets what was tried last before an instant: no environment uses it any more. */
    readonly prune: (before: number) => Stored<void>;
  }
>()("platform/store/EnvironmentBases") {}
