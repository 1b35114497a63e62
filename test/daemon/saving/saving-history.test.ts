/** The files of a runtime's own record, as the workspace program lists, reads and brings them back. */
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { HistoryPlace } from "../../../daemon/saving/command.ts";
import { FrameSource } from "../../../daemon/saving/frame-source.ts";
import { Left } from "../../../daemon/saving/left.ts";
import { listHistory } from "../../../daemon/saving/listing/history.ts";
import { restoreHistory } from "../../../daemon/saving/restoring/history.ts";
import { HISTORY_BYTES_MAX } from "../../../src/domain/runtimes/history.ts";
import { wholeFrame } from "../../../src/domain/save/frames.ts";
import type { ListedItem } from "../../../src/domain/save/listing.ts";

const ID = "conversation-1";
const FILE = `.agent/sessions/2026/${ID}.jsonl`;

let home = "";
let place: HistoryPlace;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "home-"));
  place = { home, runtime: "agent", files: [".agent/sessions/*/{id}.jsonl", ".agent/own.db"], id: ID };
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const put = (path: string, text: string): void => {
  mkdirSync(dirname(join(home, path)), { recursive: true });
  writeFileSync(join(home, path), text);
};

const item = (path: string, text: string, more: Partial<ListedItem> = {}): ListedItem => ({
  kind: "history",
  path,
  mode: "100644",
  size: Buffer.byteLength(text),
  object: createHash("sha1")
    .update(`blob ${Buffer.byteLength(text)}\0${text}`)
    .digest("hex"),
  ...more,
});

const bringBack = (items: readonly ListedItem[], texts: readonly string[], runtime = "agent") =>
  restoreHistory(
    { runtime, id: ID, items, at: 7 },
    place,
    new FrameSource(Readable.from(texts.map((text) => wholeFrame(Buffer.from(text))))),
  );

describe("a runtime's record is listed", () => {
  test("with its own files alone", () => {
    put(FILE, "one");
    put(".agent/own.db", "two");
    put(".agent/sessions/2026/conversation-2.jsonl", "another conversation");
    put(".agent/auth.json", "a key");
    const left = new Left();
    expect(listHistory(place, left)).toEqual({
      runtime: "agent",
      id: ID,
      items: [item(FILE, "one"), item(".agent/own.db", "two")],
    });
    expect(left.all).toEqual([]);
  });

  test("without links, also above it", () => {
    put("elsewhere/key.jsonl", "a key");
    mkdirSync(join(home, ".agent/sessions/2026"), { recursive: true });
    symlinkSync(join(home, "elsewhere/key.jsonl"), join(home, FILE));
    put(`elsewhere/${ID}.jsonl`, "a key");
    symlinkSync(join(home, "elsewhere"), join(home, ".agent/sessions/linked"));
    mkdirSync(join(home, ".agent/own.db"));
    expect(listHistory(place, new Left())).toBeNull();
  });

  test("not if it is too large, and that is named", () => {
    put(FILE, "");
    truncateSync(join(home, FILE), HISTORY_BYTES_MAX);
    put(".agent/own.db", "x");
    const left = new Left();
    expect(listHistory(place, left)).toBeNull();
    expect(left.all).toEqual([{ path: `~/${FILE}`, reason: "history_too_large" }]);
  });

  test("not before it has a conversation, and not without a home", () => {
    put(FILE, "one");
    expect(listHistory({ ...place, id: null }, new Left())).toBeNull();
    expect(listHistory({ ...place, home: join(home, "away") }, new Left())).toBeNull();
  });
});

describe("a runtime's record is brought back", () => {
  test("byte for byte, beside present files", async () => {
    put(".agent/settings.json", "stays");
    const back = await bringBack([item(FILE, "one"), item(".agent/own.db", "")], ["one", ""]);
    expect(back).toEqual({ id: ID, at: 7 });
    expect(readFileSync(join(home, FILE), "utf8")).toBe("one");
    expect(existsSync(join(home, ".agent/own.db"))).toBe(true);
    expect(readFileSync(join(home, ".agent/settings.json"), "utf8")).toBe("stays");
  });

  test.each([
    ["of another runtime", [item(FILE, "one")], "other"],
    ["with a path that the runtime's record does not name", [item(".agent/settings.json", "one")], "agent"],
    ["with a path outside", [item(`.agent/sessions/../../../${ID}.jsonl`, "one")], "agent"],
    ["with a link", [item(FILE, "one", { mode: "120000" })], "agent"],
    ["with work among it", [item(FILE, "one", { kind: "file" })], "agent"],
    ["that is too large", [item(FILE, "one", { size: HISTORY_BYTES_MAX + 1 })], "agent"],
  ])("not %s", async (_name, items, runtime) => {
    expect(await bringBack(items, ["one"], runtime)).toBeNull();
    expect(existsSync(join(home, ".agent"))).toBe(false);
  });

  test("not in part", async () => {
    const items = [item(FILE, "one"), item(".agent/own.db", "two")];
    expect(await bringBack(items, ["one", "other bytes"])).toBeNull();
    expect(await bringBack(items, ["one"])).toBeNull();
    expect(existsSync(join(home, FILE))).toBe(false);
  });

  test("not through a link", async () => {
    mkdirSync(join(home, "elsewhere"));
    symlinkSync(join(home, "elsewhere"), join(home, ".agent"));
    expect(await bringBack([item(".agent/own.db", "two")], ["two"])).toBeNull();
    expect(existsSync(join(home, "elsewhere/own.db"))).toBe(false);
  });
});
