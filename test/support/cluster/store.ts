/**
 * The objects of a fake API server: versions, watches with bookmarks, conflicts, graceful deletion and finalizers.
 *
 *  F1 Each change gives its object the next resource version, and is an event of that version.
 *  F2 A watch from a version gets all later events, or 410 if they were compacted away.
 *  F3 An object with a grace period or a finalizer is marked as deleted, and removed when that is done.
 */
import type { V1Pod, V1Secret } from "@kubernetes/client-node";

export type Kind = "pods" | "secrets";
export type Stored = V1Pod & V1Secret;

export interface StoreEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly kind: Kind;
  readonly object: Stored;
  readonly version: number;
}

export class Refused extends Error {
  readonly code: number;
  readonly reason: string;
  constructor(code: number, reason: string, message: string) {
    super(message);
    this.code = code;
    this.reason = reason;
  }
}

export class ClusterStore {
  #version = 100;
  #compactedTo = 0;
  #uid = 0;
  readonly #objects = { pods: new Map<string, Stored>(), secrets: new Map<string, Stored>() };
  #events: StoreEvent[] = [];
  readonly #listeners = new Set<(event: StoreEvent) => void>();

  get version(): string {
    return String(this.#version);
  }

  get(kind: Kind, name: string): Stored {
    const found = this.#objects[kind].get(name);
    if (found === undefined) throw new Refused(404, "NotFound", `${kind} "${name}" not found`);
    return found;
  }

  find(kind: Kind, name: string): Stored | null {
    return this.#objects[kind].get(name) ?? null;
  }

  list(kind: Kind, selector: string): readonly Stored[] {
    const wanted = selector
      .split(",")
      .filter(Boolean)
      .map((term) => term.split("="));
    return [...this.#objects[kind].values()].filter(({ metadata }) =>
      wanted.every(([name = "", value]) => metadata?.labels?.[name] === value),
    );
  }

  create(kind: Kind, object: Stored): Stored {
    const name = object.metadata?.name ?? "";
    if (this.#objects[kind].has(name))
      throw new Refused(409, "AlreadyExists", `${kind} "${name}" already exists`);
    this.#uid += 1;
    const metadata = { ...object.metadata, uid: `uid-${this.#uid}`, creationTimestamp: new Date() };
    return this.#put("ADDED", kind, { ...object, metadata });
  }

  /** @param expected a resource version that must be the present one */
  update(kind: Kind, name: string, change: (object: Stored) => Stored, expected?: string): Stored {
    const present = this.get(kind, name);
    if (expected !== undefined && expected !== present.metadata?.resourceVersion)
      throw new Refused(409, "Conflict", "the object has been modified");
    const changed = this.#put("MODIFIED", kind, change(structuredClone(present)));
    const { deletionTimestamp, finalizers = [] } = changed.metadata ?? {};
    if (deletionTimestamp !== undefined && finalizers.length === 0 && kind === "secrets")
      this.remove(kind, name);
    return changed;
  }

  /** Marks it as deleted. A Pod stays until its kubelet calls `remove`, unless `graceSeconds` is 0. */
  delete(kind: Kind, name: string, graceSeconds: number): Stored {
    const marked = this.update(kind, name, (object) => ({
      ...object,
      metadata: {
        ...object.metadata,
        deletionTimestamp: object.metadata?.deletionTimestamp ?? new Date(),
        deletionGracePeriodSeconds: graceSeconds,
      },
    }));
    if (kind === "pods" && graceSeconds === 0) this.remove(kind, name);
    return marked;
  }

  remove(kind: Kind, name: string): void {
    const object = this.find(kind, name);
    if (object === null || (object.metadata?.finalizers ?? []).length > 0) return;
    this.#objects[kind].delete(name);
    this.#version += 1;
    this.#tell({ type: "DELETED", kind, object, version: this.#version });
    // The garbage collector.
    for (const [owned, { metadata }] of this.#objects.secrets)
      if (metadata?.ownerReferences?.some(({ uid }) => uid === object.metadata?.uid))
        this.remove("secrets", owned);
  }

  /** Forgets events: watches from before get 410. */
  compact(): void {
    this.#events = [];
    this.#compactedTo = this.#version;
  }

  /** @throws Refused with 410 for a version whose events are forgotten */
  mustHave(from: number): void {
    if (from < this.#compactedTo)
      throw new Refused(410, "Expired", `too old resource version: ${from} (${this.#compactedTo})`);
  }

  watch(from: number, onEvent: (event: StoreEvent) => void): () => void {
    for (const event of this.#events) if (event.version > from) onEvent(event);
    this.#listeners.add(onEvent);
    return () => this.#listeners.delete(onEvent);
  }

  #put(type: "ADDED" | "MODIFIED", kind: Kind, object: Stored): Stored {
    this.#version += 1;
    const stored = {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(this.#version) },
    };
    this.#objects[kind].set(stored.metadata.name ?? "", stored);
    this.#tell({ type, kind, object: stored, version: this.#version });
    return stored;
  }

  #tell(event: StoreEvent): void {
    this.#events.push(event);
    for (const listener of this.#listeners) listener(event);
  }
}
