import { describe, expect, test } from "vitest";
import { ACTORS_MAX, Feed, type Line, WAITING_MAX } from "../../../src/http/inspect/feed.ts";
import { row, step } from "./readers.ts";

interface Seen {
  readonly type: string;
  readonly sessionId: string;
  readonly snapshot?: { readonly value: string; readonly status: string };
  readonly event?: { readonly type: string };
}

/** A connection that takes a frame at a time, when the test asks for it. */
class SlowLine implements Line {
  readonly frames: Seen[] = [];
  isEnded = false;
  #sent: (() => void) | null = null;

  send(frame: string, sent: () => void): void {
    this.frames.push(JSON.parse(frame) as Seen);
    this.#sent = sent;
  }

  end(): void {
    this.isEnded = true;
  }

  /** Takes all that there is. */
  drain(): readonly Seen[] {
    while (this.#sent !== null) {
      const sent = this.#sent;
      this.#sent = null;
      sent();
    }
    return this.frames;
  }
}

const short = (frames: readonly Seen[]) =>
  frames.map(({ type, sessionId, event, snapshot }) =>
    [type.replace("@xstate.", ""), sessionId, event?.type, snapshot?.value, snapshot?.status]
      .filter((part) => part !== undefined)
      .join(" "),
  );

const refuse = (): never => {
  throw new Error("it was read");
};

const opened = (feed: Feed, past = [row({})]) => {
  const line = new SlowLine();
  feed.open(line);
  feed.begin(line, past, 9);
  return line;
};

describe("the feed of inspected actors", () => {
  test("reads no part of a step without a reader", () => {
    const feed = new Feed();
    const secretive = Object.defineProperty({ state: "running" }, "context", { get: refuse });
    feed.keep(step({ snapshot: secretive as never }));
    expect(feed.isWatched).toBe(false);
    expect(() => feed.show(step({ snapshot: secretive as never }), 0)).toThrow("it was read");
  });

  test("begins with the history, goes on with the present, then with each step", () => {
    const feed = new Feed();
    feed.keep(step({ event: { type: "stop.requested" }, snapshot: { state: "stopped", context: {} } }));
    feed.keep(step({ machine: "account", actorId: "a1", snapshot: { state: "idle", context: {} } }));
    const line = opened(feed, [
      row({ actor: { kind: "sandbox", id: "b1" }, event: "boot.failed", to: "error" }),
      row({ at: 2 }),
    ]);
    const draining = step({
      machine: "account",
      actorId: "a1",
      event: { type: "fire.queued" },
      snapshot: { state: "draining", context: {} },
    });
    feed.keep(draining);
    feed.show(draining, 10);
    expect(short(line.drain())).toEqual([
      "actor sandbox:b1 provisioning active",
      "event sandbox:b1 boot.failed",
      "snapshot sandbox:b1 boot.failed error done",
      "actor session:s1 provisioning active",
      "event session:s1 sandbox.live",
      "snapshot session:s1 sandbox.live running active",
      "snapshot sandbox:b1 memory.left error stopped",
      "snapshot session:s1 stop.requested stopped active",
      "actor account:a1 idle active",
      "event account:a1 fire.queued",
      "snapshot account:a1 fire.queued draining active",
    ]);
  });

  test("shows no step before the history, and announces an actor that a reader does not know", () => {
    const feed = new Feed();
    const line = new SlowLine();
    feed.open(line);
    feed.show(step({ event: { type: "stop.requested" } }), 1);
    expect(line.frames).toEqual([]);
    feed.begin(line, [], 2);
    feed.show(step({ event: { type: "stop.requested" } }), 3);
    feed.show(step({ left: true }), 4);
    feed.show(step({ left: true }), 5);
    expect(short(line.drain())).toEqual([
      "actor session:s1 provisioning active",
      "event session:s1 stop.requested",
      "snapshot session:s1 stop.requested provisioning active",
      "snapshot session:s1 memory.left provisioning stopped",
    ]);
  });

  test("disconnects a reader that falls behind, and no other one", () => {
    const feed = new Feed();
    const [slow, quick] = [opened(feed), opened(feed)];
    for (let n = 0; n < WAITING_MAX / 2; n += 1) {
      feed.show(step({ event: { type: "stop.requested" } }), n);
      quick.drain();
    }
    expect([slow.isEnded, quick.isEnded]).toEqual([false, false]);
    feed.show(step({ event: { type: "stop.requested" } }), 0);
    expect([slow.isEnded, quick.isEnded]).toEqual([true, false]);
  });

  test("remembers a bounded number of actors: the ones that changed last, and none that left memory", () => {
    const feed = new Feed();
    for (let n = 0; n <= ACTORS_MAX; n += 1) feed.keep(step({ actorId: String(n) }));
    feed.keep(step({ actorId: "7", left: true }));
    const ids = opened(feed, [])
      .drain()
      .map(({ sessionId }) => sessionId);
    expect(ids).toHaveLength(ACTORS_MAX - 1);
    expect(ids).not.toContain("session:0");
    expect(ids).not.toContain("session:7");
  });
});
