/** What the agents of sandboxes write, and what the sandboxes get back: paths with versions. */
import * as Effect from "effect/Effect";
import type { Files, Workspaces } from "../../twins/saves.ts";
import type { Random } from "../random.ts";
import type { SimulatedTime } from "../time.ts";

const PATHS = 5;
const CHANGES_MAX = 12;
/** From its readiness on, a sandbox's agent writes for so long, ms. */
const WRITES_MS = 10_000;
/** The share of changes that cannot be read. */
const UNREADABLE = 0.12;
/** A part takes so long, ms, so that crashes come between two. */
const PART_MS = 150;

interface Change {
  /** ms of `elapsed`. */
  readonly at: number;
  readonly path: string;
  readonly version: string;
  readonly isUnreadable: boolean;
}

interface WorkOptions {
  readonly time: SimulatedTime;
  readonly randomOf: (label: string) => Random;
  readonly isServing: (sandboxId: string) => boolean;
  /** When a sandbox is ready, ms of `elapsed`. */
  readonly readyAt: (sandboxId: string) => number;
}

export class Work implements Workspaces {
  readonly #options: WorkOptions;
  readonly #changes = new Map<string, readonly Change[]>();
  readonly #restored = new Map<string, Files>();
  #isHealed = false;
  /** Called when a sandbox gets saved work. */
  onWrite: (sandboxId: string, files: Files) => void = () => undefined;

  constructor(options: WorkOptions) {
    this.#options = options;
  }

  /** From now on everything can be read. */
  heal(): void {
    this.#isHealed = true;
  }

  hasRestored(sandboxId: string): boolean {
    return this.#restored.has(sandboxId);
  }

  #changesOf(sandboxId: string): readonly Change[] {
    const known = this.#changes.get(sandboxId);
    if (known !== undefined) return known;
    const random = this.#options.randomOf(`work of ${sandboxId}`);
    const since = this.#options.readyAt(sandboxId);
    const made = Array.from({ length: random.between(0, CHANGES_MAX) }, (_, index) => ({
      at: since + random.between(0, WRITES_MS),
      path: `path-${random.between(1, PATHS)}`,
      version: `${sandboxId} ${index}`,
      isUnreadable: random.chance(UNREADABLE),
    })).toSorted((one, other) => one.at - other.at);
    this.#changes.set(sandboxId, made);
    return made;
  }

  #present(sandboxId: string): readonly Change[] {
    return this.#changesOf(sandboxId).filter(({ at }) => at <= this.#options.time.elapsed);
  }

  list(sandboxId: string): Files | null {
    if (!this.#options.isServing(sandboxId)) return null;
    const written = this.#present(sandboxId).map(({ path, version }) => [path, version] as const);
    return new Map([...(this.#restored.get(sandboxId) ?? []), ...written]);
  }

  fault(sandboxId: string, path: string): string | null {
    const last = this.#present(sandboxId).findLast((change) => change.path === path);
    return !this.#isHealed && last?.isUnreadable === true ? "unreadable" : null;
  }

  write(sandboxId: string, files: Files): boolean {
    this.#restored.set(sandboxId, files);
    this.onWrite(sandboxId, files);
    return true;
  }

  get part(): Effect.Effect<void> {
    return Effect.sleep(PART_MS);
  }
}
