/** Requests that no git client sends: harmful bodies, aborts and names, against the smart-HTTP functions. */
import { randomBytes } from "node:crypto";
import { readdirSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import * as Effect from "effect/Effect";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { gzipSync } from "node:zlib";
import { absent } from "../../../src/git/server/ref-policy.ts";
import { spawnGit } from "../../../src/git/run.ts";
import { smartHttp } from "../../../src/git/server/smart-http.ts";
import { git, gitOk } from "../git-client.ts";
import { type GitServer, startGitServer } from "../git-server.ts";
import { deltaBomb } from "./packs.ts";
import { commit, objects, scene, tip, url, useScene } from "../scene.ts";
import { WAIT_MS } from "../../support/patience.ts";
import { deepTest, onlyDeep } from "../../support/vitest/rings.ts";

useScene();

const packet = (text: string): string => (Buffer.byteLength(text) + 4).toString(16).padStart(4, "0") + text;

const post = (service: string, headers: Record<string, string>, body: Uint8Array) =>
  // oxlint-disable-next-line no-restricted-globals -- the test's own client
  fetch(`http://${scene.server.address}/v1/git/${scene.projectId}.git/${service}`, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`git:${scene.session}`).toString("base64")}`,
      "content-type": `application/x-${service}-request`,
      ...headers,
    },
    body,
  });

/** The head of a request that a test writes byte by byte. */
const requestHead = (server: GitServer, service: string, length: number): string =>
  [
    `POST /v1/git/${scene.projectId}.git/${service} HTTP/1.1`,
    `Host: ${server.address}`,
    `Authorization: Basic ${Buffer.from(`git:${scene.session}`).toString("base64")}`,
    `Content-Type: application/x-${service}-request`,
    `Content-Length: ${length}`,
    "",
    "",
  ].join("\r\n");

/** A pack without objects, as a push of known commits carries it. */
const emptyPack = Buffer.from("5041434b0000000200000000029d08823bd8a8eab510ad6ac75c823cfd3ed31e", "hex");

const sendPacked = async (body: Uint8Array): Promise<string> => {
  const answer = await post("git-upload-pack", { "content-encoding": "gzip" }, body);
  return answer.text();
};

/** Ends a hung test; nothing is asserted about speed. */
const patience = { timeout: WAIT_MS };

/** Processes at work in the repository. */
const gits = (): string[] =>
  readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`) === scene.bare;
    } catch {
      return false; // It ended while it was looked at.
    }
  });

const quarantines = (): string[] =>
  readdirSync(join(scene.bare, "objects")).filter((name) => name.startsWith("tmp_objdir"));

describe("the wire protocol", () => {
  deepTest("refuses a body that does not match its path, or that has an unknown encoding", async () => {
    const wrongType = await post("git-upload-pack", { "content-type": "text/plain" }, Buffer.from("0000"));
    expect(wrongType.status).toBe(415);
    const wrongPacking = await post("git-upload-pack", { "content-encoding": "br" }, Buffer.from("0000"));
    expect(wrongPacking.status).toBe(415);
  });

  deepTest(
    "cuts off a request that unpacks to more than its limit, and one whose gzip is damaged",
    async () => {
      const bomb = gzipSync(
        Buffer.alloc(33 * 1024 ** 2, "0032want 0000000000000000000000000000000000000000\n"),
      );
      const before = scene.server.ends.length;
      await sendPacked(bomb).catch(() => "cut off");
      await expect(sendPacked(Buffer.from("no gzip"))).rejects.toThrow();
      expect(scene.server.ends.slice(before)).toContain("broken");
    },
  );

  it("is not confused by a ref name that contains a line break [G09]", async () => {
    const main = await tip("refs/heads/main");
    const wild = `refs/heads/${scene.session}\n${absent} ${main} refs/heads/${scene.session}`;
    const command = packet(`${absent} ${main} ${wild}\0report-status\n`);
    const answer = await post(
      "git-receive-pack",
      {},
      Buffer.concat([Buffer.from(`${command}0000`), emptyPack]),
    );
    expect(await answer.text()).not.toContain("ok refs/");
    expect(await tip("refs/heads/main")).toBe(main);
  });

  onlyDeep(() => {
    it.each([["\r"], ["\u2028"], ["\n"]])(
      "does not take %j in a ref name for a line break [G09]",
      async (separator) => {
        const before = await tip("refs/heads/main");
        const after = await commit("after.txt");
        await gitOk(scene.work, "push", "--quiet", "origin", "HEAD");
        const branch = `refs/heads/${scene.session}`;
        const announced = `${after} ${before} forward ${branch}`;
        const smuggled = `${absent} ${before} refs/heads/x${separator}ref ${announced}`;
        const rewind = `${after} ${before} ${branch}`;
        for (const [first, second] of [
          [rewind, smuggled],
          [smuggled, rewind],
        ]) {
          const commands = `${packet(`${first}\0report-status\n`)}${packet(`${second}\n`)}0000`;
          // oxlint-disable-next-line no-await-in-loop -- one after another
          const answer = await post(
            "git-receive-pack",
            {},
            Buffer.concat([Buffer.from(commands), emptyPack]),
          );
          // oxlint-disable-next-line no-await-in-loop -- one after another
          expect(await answer.text()).not.toContain("ok refs/");
        }
        expect(await tip(branch)).toBe(after);
      },
    );
  });

  it("ends git when the client disconnects during a push, and stores no part of the push", async () => {
    const stored = await objects();
    const main = await tip("refs/heads/main");
    const [host = "", port = ""] = scene.server.address.split(":");
    const socket = connect(Number(port), host);
    const command = packet(`${main} ${"1".repeat(40)} refs/heads/${scene.session}\0report-status\n`);
    const head = requestHead(scene.server, "git-receive-pack", 100_000);
    const ends = scene.server.ends.length;
    socket.write(`${head}${command}0000PACK\0\0\0\u0002\0\0\0\u0009`);
    await expect.poll(() => quarantines().length, patience).toBe(1); // git runs and waits for the rest of the pack
    socket.destroy();
    await expect.poll(() => scene.server.ends.length, patience).toBe(ends + 1);
    expect(scene.server.ends.at(-1)).toBe("broken");
    expect(await objects()).toBe(stored);
    expect(quarantines()).toEqual([]);
  });

  deepTest("ends git when no byte arrives within the idle time", async () => {
    const hasty = await startGitServer(smartHttp({ directory: scene.directory, idleMs: 50 }), scene.policies);
    const [host = "", port = ""] = hasty.address.split(":");
    const socket = connect(Number(port), host);
    socket.write(requestHead(hasty, "git-upload-pack", 100_000));
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
    await expect.poll(() => hasty.ends, patience).toEqual(["broken"]);
    await hasty.close();
  });

  deepTest(
    "ends a push that takes too long, even at a steady rate, and stores no part of it [G08]",
    async () => {
      const stored = await objects();
      const hasty = await startGitServer(
        smartHttp({ directory: scene.directory, maxPushMs: 500 }),
        scene.policies,
      );
      const [host = "", port = ""] = hasty.address.split(":");
      const socket = connect(Number(port), host);
      const closed = new Promise((resolve) => socket.once("close", resolve));
      socket.on("error", () => undefined).resume();
      const command = packet(`${absent} ${"1".repeat(40)} refs/heads/${scene.session}\0report-status\n`);
      socket.write(
        `${requestHead(hasty, "git-receive-pack", 100_000)}${command}0000PACK\0\0\0\u0002\0\0\0\u0009`,
      );
      const drip = setInterval(() => socket.write("\0"), 20);
      await closed;
      clearInterval(drip);
      await expect.poll(() => hasty.ends, patience).toEqual(["broken"]);
      expect(await objects()).toBe(stored);
      expect(quarantines()).toEqual([]);
      await hasty.close();
    },
  );

  it("refuses at once a kilobyte that would unpack to half a gigabyte, and stores no part of it [G08]", async () => {
    const stored = await objects();
    const command = packet(`${absent} ${"1".repeat(40)} refs/heads/${scene.session}\0report-status\n`);
    const bomb = deltaBomb(512);
    expect(bomb.length).toBeLessThan(2048);
    const answer = await post("git-receive-pack", {}, Buffer.concat([Buffer.from(`${command}0000`), bomb]));
    expect(await answer.text()).toMatch(/unpack (?!ok)/);
    expect(await objects()).toBe(stored);
    expect(quarantines()).toEqual([]);
  });

  deepTest("leaves no quarantine of a push that is ended while its git process runs [G08]", async () => {
    const push = Effect.gen(function* () {
      const args = ["receive-pack", "--stateless-rpc", scene.bare];
      const running = yield* spawnGit({ repository: null, args, stopBy: "hang-up", hangUpMs: 10 });
      const command = packet(`${absent} ${"1".repeat(40)} refs/heads/x\0report-status\n`);
      running.stdin.end(Buffer.concat([Buffer.from(`${command}0000`), deltaBomb(512)]));
      // Unpacking takes git more than a second.
      yield* Effect.promise(() => expect.poll(() => quarantines().length, patience).toBe(1));
    });
    await Effect.runPromise(Effect.scoped(push));
    expect(quarantines()).toEqual([]);
  });

  deepTest("ends git and the connection when the client stops reading", async () => {
    const hasty = await startGitServer(
      smartHttp({ directory: scene.directory, idleMs: 3000 }),
      scene.policies,
    );
    // More than a connection's buffers hold, and nothing that could be packed smaller.
    await commit("noise.bin", randomBytes(10 * 1024 ** 2).toString("latin1"));
    await gitOk(scene.work, "push", "--quiet", "origin", "HEAD");
    // Packed beforehand: on a loaded machine git would be silent for longer than the idle time while it packs.
    await gitOk(scene.bare, "repack", "-a", "-d", "--quiet", "--window=0");
    const [host = "", port = ""] = hasty.address.split(":");
    const body = `${packet(`want ${await tip(`refs/heads/${scene.session}`)}\n`)}0000${packet("done\n")}`;
    const socket = connect(Number(port), host);
    const closed = new Promise((resolve) => socket.once("error", resolve).once("close", resolve));
    const begun = new Promise((resolve) => socket.once("readable", resolve)); // and nothing is read from then on
    socket.write(`${requestHead(hasty, "git-upload-pack", body.length)}${body}`);
    await begun;
    await expect.poll(() => gits().length, patience).toBeGreaterThan(1); // upload-pack, and what it has started
    await expect.poll(() => hasty.ends, patience).toEqual(["broken"]);
    await expect.poll(gits, patience).toEqual([]);
    socket.resume();
    await closed;
    await hasty.close();
  });

  deepTest("leaves no credential in the repository or in its answers [G05]", async () => {
    await commit("change.txt");
    const pushed = await git(scene.work, "push", "--verbose", "origin", "HEAD", "HEAD:refs/heads/main");
    const canary = scene.person;
    await git(scene.work, "push", url(canary), "HEAD:refs/heads/canary");
    expect(pushed.stderr).not.toContain(`git:${scene.session}`);
    const grep = await git(scene.root, "grep", "--no-index", "--text", "-l", canary, "--", scene.bare);
    expect(grep.stdout).toBe("");
  });
});
