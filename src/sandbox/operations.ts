/** What providers of real sandboxes share: the way from operations that are promises to the port, and their order. */
import * as Effect from "effect/Effect";
import { thrownText } from "../ground/thrown.ts";
import type { RuntimeStore } from "./runtimes/store.ts";
import {
  SandboxError,
  type DaemonLink,
  type SandboxExit,
  type SandboxListing,
  type SandboxProvider,
  type SandboxSpec,
} from "./port.ts";

/** There is no room for a sandbox where it would run. */
export class NoCapacity extends Error {
  /** Whether room may come by itself, for example when another sandbox ends. */
  readonly mayPass: boolean;
  constructor(message: string, mayPass: boolean) {
    super(message);
    this.mayPass = mayPass;
  }
}

/** A promise as an effect. Its rejection becomes the port's error, with the same message. */
export const attempt = <A>(
  operation: SandboxError["operation"],
  run: () => Promise<A>,
): Effect.Effect<A, SandboxError> =>
  Effect.tryPromise({
    try: run,
    catch: (error) =>
      new SandboxError({
        operation,
        message: thrownText(error),
        ...(error instanceof NoCapacity && { code: "no_capacity" }),
      }),
  });

/** The port's operations as promises. */
export interface SandboxOperations {
  create(spec: SandboxSpec): Promise<void>;
  awaitExit(id: string): Promise<SandboxExit>;
  list(): Promise<SandboxListing[]>;
  link(id: string): Promise<DaemonLink>;
  setSecretNames(id: string, secretNames: readonly string[]): Promise<void>;
  logs(id: string): Promise<string>;
  end(id: string): Promise<void>;
  destroy(id: string): Promise<void>;
}

type Port = (typeof SandboxProvider)["Service"];

/** `installed` of the port over a node's runtimes. Starting a sandbox says what is wrong with one. */
export const installedIn =
  (runtimes: Pick<RuntimeStore, "find">): Port["installed"] =>
  ({ packaged }) =>
    packaged === undefined
      ? Effect.succeed(null)
      : attempt("create", () => runtimes.find(packaged.name)).pipe(
          Effect.match({ onSuccess: (tree) => tree?.digest ?? null, onFailure: () => null }),
        );

/** The port over these operations. One that changes something is not interrupted half-way. */
export const portOver = (
  sandboxes: SandboxOperations,
  about: Pick<Port, "name" | "summary" | "installed" | "doctor">,
): Port => ({
  ...about,
  create: (spec) => Effect.uninterruptible(attempt("create", () => sandboxes.create(spec))),
  awaitExit: (id) => Effect.promise(() => sandboxes.awaitExit(id)),
  list: attempt("list", () => sandboxes.list()),
  link: (id) => attempt("link", () => sandboxes.link(id)),
  setSecretNames: (id, names) =>
    Effect.uninterruptible(attempt("setSecretNames", () => sandboxes.setSecretNames(id, names))),
  logs: (id) => attempt("logs", () => sandboxes.logs(id)),
  end: (id) => Effect.uninterruptible(attempt("end", () => sandboxes.end(id))),
  destroy: (id) => Effect.uninterruptible(attempt("destroy", () => sandboxes.destroy(id))),
});

/** Runs operations on the same sandbox one after the other. */
export class OneAtATime {
  readonly #tails = new Map<string, Promise<void>>();

  /** Whether an operation on this sandbox runs or waits. */
  isBusy(id: string): boolean {
    return this.#tails.has(id);
  }

  /** Runs `body` after every earlier operation on the same sandbox, however they ended. */
  async run<A>(id: string, body: () => Promise<A>): Promise<A> {
    const result = (this.#tails.get(id) ?? Promise.resolve()).then(body);
    const tail = result.then(
      () => undefined,
      () => undefined,
    );
    this.#tails.set(id, tail);
    try {
      return await result;
    } finally {
      if (this.#tails.get(id) === tail) this.#tails.delete(id);
    }
  }
}
