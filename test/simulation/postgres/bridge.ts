/**
 * The real Postgres store in a separate thread, behind the simulation's port.
 *
 * Virtual time and real I/O go together by standing still. A call of the store is sent to the thread and takes real
 * time there, several at once, so that transactions meet each other's locks as they do in production. The simulation
 * continues with other ready work. When no work is ready, it does not advance its clock: it blocks (Atomics.wait)
 * until an answer arrives, and runs the work that the answer makes ready. So a statement takes no virtual time, time
 * passes only while the store is quiet, and the simulation itself stays one synchronous program, the same as over the
 * twin. The database decides the order of answers: the trace does not follow from the seed alone, and only invariants
 * are checked.
 *
 * A node that dies loses its connections (pg_terminate_backend), as a killed process does, before anything else
 * happens; its sent statements may or may not be committed. Signals of commits (`changed`) are not passed on: readers
 * poll, which covers a lost signal.
 */
import { MessageChannel, receiveMessageOnPort, Worker, type MessagePort } from "node:worker_threads";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import { CapReached, Fenced, StoreError } from "../../../src/store/ports/journal.ts";
import { BadCursor, Taken } from "../../../src/store/ports/errors.ts";
import type { Process } from "../time.ts";
import type { Answer, Asked, Order, Outcome } from "./orders.ts";

/** If an answer takes longer than this, ms, the thread is lost. */
const LONGEST_MS = 120_000;

const ERRORS: Readonly<Record<string, (fields: never) => unknown>> = {
  StoreError: (fields: { operation: string; cause: string }) =>
    new StoreError({ ...fields, cause: new Error(fields.cause) }),
  Fenced: (fields) => new Fenced(fields),
  CapReached: (fields) => new CapReached(fields),
  Taken: (fields) => new Taken(fields),
  BadCursor: (fields) => new BadCursor(fields),
};

const exitOf = (outcome: Outcome): Exit.Exit<unknown, unknown> => {
  if (outcome.is === "done") return Exit.succeed(outcome.value);
  if (outcome.is === "defect") return Exit.die(new Error(outcome.message));
  const error = ERRORS[outcome.tag];
  return error === undefined
    ? Exit.die(new Error(`the store failed with ${outcome.tag}: ${JSON.stringify(outcome.fields)}`))
    : Exit.fail(error(outcome.fields as never));
};

interface Waiting {
  readonly process: Process | null;
  readonly answer: (outcome: Outcome) => void;
}

export class Bridge {
  readonly #worker: Worker;
  readonly #port: MessagePort;
  /** Counts the answers: what the thread wakes us by. */
  readonly #signal = new Int32Array(new SharedArrayBuffer(4));
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;

  /** @param url an administrator's; null: an embedded server of its own, which may be killed. */
  constructor(url: string | null) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#worker = new Worker(new URL("store-thread.ts", import.meta.url), {
      workerData: { port: port2, signal: this.#signal, url },
      transferList: [port2],
    });
    this.#worker.unref();
    port1.unref();
  }

  /** How many calls of processes that live have no answer yet. */
  get isQuiet(): boolean {
    return ![...this.#waiting.values()].some(({ process }) => process?.isDead !== true);
  }

  #send(order: Order, waiting: Waiting): void {
    this.#last += 1;
    this.#waiting.set(this.#last, waiting);
    this.#port.postMessage({ id: this.#last, order } satisfies Asked, []);
  }

  /** Blocks until an answer arrives, and delivers the answers. */
  await(): void {
    const seen = Atomics.load(this.#signal, 0);
    if (this.#deliver()) return;
    const outcome = Atomics.wait(this.#signal, 0, seen, LONGEST_MS);
    if (outcome === "timed-out") throw new Error("the thread of the store does not answer");
    this.#deliver();
  }

  #deliver(): boolean {
    let came = false;
    for (;;) {
      const received = receiveMessageOnPort(this.#port);
      if (received === undefined) return came;
      came = true;
      const { id, outcome } = received.message as Answer;
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (waiting?.process?.isDead !== true) waiting?.answer(outcome);
    }
  }

  #carriedOut(order: Order): Exit.Exit<unknown, unknown> {
    const said: { outcome: Outcome | null } = { outcome: null };
    this.#send(order, { process: null, answer: (outcome) => (said.outcome = outcome) });
    while (said.outcome === null) this.await();
    return exitOf(said.outcome);
  }

  /** Sends an order and blocks until it is carried out. */
  order(order: Order): unknown {
    const exit = this.#carriedOut(order);
    if (Exit.isSuccess(exit)) return exit.value;
    throw new Error(`${order.do} was not carried out: ${String(exit.cause)}`);
  }

  /** A call of the store as a process makes it. */
  call(process: Process, order: Order): Effect.Effect<unknown, unknown> {
    return Effect.callback<unknown, unknown>((resume) => {
      this.#send(order, { process, answer: (outcome) => resume(exitOf(outcome)) });
    });
  }

  /** A call of the store past all processes: blocks. */
  ask(order: Order): Effect.Effect<unknown, unknown> {
    return Effect.suspend(() => this.#carriedOut(order));
  }

  async close(): Promise<void> {
    this.order({ do: "close" });
    await this.#worker.terminate();
  }
}
