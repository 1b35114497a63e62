/** Attachments on their way through the daemon to the real opencode, and to its model. */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ATTACHMENT_MAX, type AttachmentHead } from "../../src/domain/attachment.ts";
import { hasOpencode, Steered } from "./support/steered.ts";

/** One pixel. */
const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const headOf = (name: string, media_type: string, content: Uint8Array): AttachmentHead => ({
  id: randomUUID(),
  name,
  media_type,
  bytes: content.length,
  sha256: createHash("sha256").update(content).digest("hex"),
});

const incomplete = (missing: readonly string[]) => [200, { outcome: "incomplete", attachments: missing }];

describe.skipIf(!hasOpencode)("a message with attachments", () => {
  let steered: Steered;
  beforeAll(async () => {
    steered = await Steered.start();
    await steered.daemon.logged("ready");
  });
  afterAll(() => steered.stop());

  const pathOf = ({ id, name }: AttachmentHead) =>
    join(steered.daemon.layout.attachmentsDir, id, name.replace(/.*\//, ""));

  test("waits for its files, and takes the model their content and their paths", async () => {
    const log = Buffer.from("the first line of the log\n");
    const archive = Buffer.from("PK\u0003\u0004\0\0\0", "latin1");
    const attachments = [
      headOf("error.log", "text/plain", log),
      headOf("pixel.png", "image/png", PNG),
      headOf("src.zip", "application/zip", archive),
    ];
    const ids = attachments.map(({ id }) => id);
    const choice = { attachments, model: "held/two" };
    expect(await steered.send("m1", "Compare them.", choice)).toEqual(incomplete(ids));
    expect(await steered.attach(ids[0] ?? "", log)).toEqual([200, { stored: true }]);
    expect(await steered.send("m1", "Compare them.", choice)).toEqual(incomplete(ids.slice(1)));
    expect(await steered.attach(ids[1] ?? "", PNG)).toEqual([200, { stored: true }]);
    expect(await steered.attach(ids[2] ?? "", archive)).toEqual([200, { stored: true }]);
    expect(await steered.deliver("m1", "Compare them.", choice)).toBe(1);
    await steered.ended(1);
    const [call] = steered.model.calls;
    expect(call?.text).toContain("Compare them.");
    expect(call?.text).toContain("the first line of the log");
    expect(call?.images).toEqual([`data:image/png;base64,${PNG.toString("base64")}`]);
    for (const head of attachments) {
      expect(call?.text).toContain(`- ${pathOf(head)} (${head.media_type}, ${head.bytes} bytes)`);
      // The agent is another user.
      expect(statSync(pathOf(head)).mode & 0o777).toBe(0o644);
    }
    expect(readFileSync(pathOf(attachments[2] ?? headOf("", "", archive))).equals(archive)).toBe(true);
    const changed = await steered.daemon.git("status", "--porcelain", "--ignored");
    for (const { name } of attachments) expect(changed).not.toContain(name);
    expect(steered.answersTo("m1")).toMatchObject([{ status: "completed" }]);
  });

  test("may be only a file, and is handed over once although it is repeated", async () => {
    const attachments = [headOf("../../notes.md", "text/markdown", Buffer.from("# Notes"))];
    const id = attachments[0]?.id ?? "";
    const choice = { attachments };
    await steered.send("m2", "", choice);
    expect(await steered.attach(id, Buffer.from("# Notes"))).toEqual([200, { stored: true }]);
    const both = await Promise.all([steered.send("m2", "", choice), steered.send("m2", "", choice)]);
    expect(both).toEqual([
      [200, { outcome: "accepted", turn: 2 }],
      [200, { outcome: "accepted", turn: 2 }],
    ]);
    await steered.ended(2);
    expect(steered.model.calls.at(-1)?.text.match(/# Notes/g)).toHaveLength(1);
    expect(existsSync(join(steered.daemon.layout.attachmentsDir, id, "notes.md"))).toBe(true);
  });

  test("is taken with the wanted files only, and with their own bytes", async () => {
    const head = headOf("a.txt", "text/plain", Buffer.from("right"));
    expect(await steered.attach(head.id, Buffer.from("right"))).toMatchObject([404, { code: "not_found" }]);
    await steered.send("m3", "Look.", { attachments: [head] });
    expect(await steered.attach(head.id, Buffer.from("wrong"))).toMatchObject([
      400,
      { code: "invalid_request" },
    ]);
    expect(await steered.attach(head.id, Buffer.alloc(6))).toMatchObject([413, { code: "body_too_large" }]);
    expect(await steered.attach(randomUUID(), Buffer.alloc(ATTACHMENT_MAX + 1))).toMatchObject([
      413,
      { code: "body_too_large" },
    ]);
    expect(await steered.call("attachments/x")).toMatchObject([404, { code: "not_found" }]);
    expect(await steered.call(`attachments/${head.id}`)).toMatchObject([405, { code: "method_not_allowed" }]);
  });
});
