import { describe, expect, it } from "vitest";
import {
  DAEMON_PROTOCOL,
  daemonProtocol,
  isOutdated,
  OLDEST_DAEMON_PROTOCOL,
} from "../../../src/domain/sandbox/daemon-protocol.ts";

const daemon = { version: "0.1.0", uptime_ms: 1 };

describe("the protocol of a daemon", () => {
  it.each([
    ["is the one that it reports", { daemon, protocol: 7, typed_at: null }, 7],
    ["is 1 for a daemon that knows terminals and reports none", { daemon, typed_at: null }, 1],
    ["is 0 for one from before terminals", { daemon, status: "ready" }, 0],
    ["is unknown for a report that no daemon makes", { status: "ready" }, null],
    ["is unknown for something else", "ready", null],
  ])("%s", (_, report, protocol) => {
    expect(daemonProtocol(report)).toBe(protocol);
  });

  it("is too old below the oldest supported one, and never in this version's own daemon", () => {
    expect(isOutdated(OLDEST_DAEMON_PROTOCOL - 1)).toBe(true);
    expect([OLDEST_DAEMON_PROTOCOL, DAEMON_PROTOCOL, DAEMON_PROTOCOL + 1].map(isOutdated)).toEqual([
      false,
      false,
      false,
    ]);
  });
});
