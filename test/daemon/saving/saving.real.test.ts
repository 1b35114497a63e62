/** Saved work of a real daemon: the service's client lists and reads a workspace, and gives it to the next sandbox. */
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import * as Effect from "effect/Effect";
import { expect, test } from "vitest";
import { FrameReader, wholeFrame } from "../../../src/domain/save/frames.ts";
import type { Listing, RestorePlan } from "../../../src/domain/save/listing.ts";
import { SERVICE_ROLE, signUserContext } from "../../../src/domain/sandbox/user-context.ts";
import { savingHttp } from "../../../src/sandbox/daemon-saving.ts";
import { daemonPerTest } from "../support/per-test.ts";
import { TOKEN, type Running } from "../support/running.ts";

const { ready } = daemonPerTest();

const linkTo = ({ layout }: Running) => ({ kind: "unix" as const, path: layout.socket });
const contextOf = ({ sessionId }: Running, role = SERVICE_ROLE): string =>
  // oxlint-disable-next-line no-restricted-properties -- the daemon under test reads the machine's clock
  signUserContext({ userId: "service", sessionId, role, nowMs: Date.now() }, TOKEN);

const list = (daemon: Running): Promise<Listing> => {
  const pushed = daemon.remote("rev-parse", daemon.sessionId);
  const request = { pushed, base: pushed };
  return Effect.runPromise(
    savingHttp.listing(linkTo(daemon), contextOf(daemon), { request, timeoutMs: 20_000 }),
  );
};

const bytesOf = async (body: Readable): Promise<readonly Buffer[]> => {
  const reader = new FrameReader();
  const contents: Buffer[] = [];
  let chunks: Buffer[] = [];
  for await (const bytes of body)
    for (const part of reader.push(bytes as Buffer)) {
      if (part.type === "chunk") chunks.push(part.bytes);
      else {
        expect(part.end).toBe("whole");
        contents.push(Buffer.concat(chunks));
        chunks = [];
      }
    }
  return contents;
};

const read = (daemon: Running, request: Parameters<typeof savingHttp.read>[2]): Promise<readonly Buffer[]> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(savingHttp.read(linkTo(daemon), contextOf(daemon), request), (body) =>
        Effect.promise(() => bytesOf(body)),
      ),
    ),
  );

/** The listing with its contents, as the service gives them to the next sandbox. */
const deliveryOf = async (daemon: Running, listing: Listing): Promise<Readable> => {
  const packs: Buffer[] = [];
  for (const { repository, ref, commit, within } of listing.commits)
    if (within === null)
      packs.push(
        ...(await read(daemon, {
          items: [],
          share: 1,
          commits: { repository, ref, commit, without: [listing.base ?? ""] },
        })),
      );
  const items = listing.items.flatMap(({ kind, path, object }) =>
    object === null ? [] : [{ kind, path, object }],
  );
  const contents = await read(daemon, { items, share: 1 });
  const { base, head, heads, commits } = listing;
  const plan: RestorePlan = {
    saves: [{ base, head, heads, commits, items: listing.items }],
    missing: [],
    error: null,
  };
  return Readable.from([Buffer.from(JSON.stringify(plan)), ...packs, ...contents].map(wholeFrame), {
    objectMode: false,
  });
};

test("everything that a workspace has beside its branch comes back in the next sandbox", async () => {
  const daemon = await ready({ files: { "README.md": "hello\n", "gone.txt": "gone\n" } });
  const at = (path: string): string => join(daemon.layout.workspace, path);
  writeFileSync(at("committed.txt"), "committed\n");
  await daemon.git("add", "-A");
  await daemon.git("commit", "-q", "-m", "not pushed");
  writeFileSync(at("README.md"), "changed\n");
  writeFileSync(at("staged.txt"), "staged\n");
  await daemon.git("add", "staged.txt");
  writeFileSync(at("staged.txt"), "staged, then changed\n");
  mkdirSync(at("new"));
  writeFileSync(at("new/run.sh"), "#!/bin/sh\n");
  chmodSync(at("new/run.sh"), 0o755);
  symlinkSync("run.sh", at("new/link"));
  rmSync(at("gone.txt"));
  const status = await daemon.git("status", "--porcelain");
  const head = await daemon.git("rev-parse", "HEAD");
  const listing = await list(daemon);
  const body = await deliveryOf(daemon, listing);

  await daemon.end();
  const waiting = daemon.reboot({ restore: true });
  await daemon.logged("waiting for saved work");
  expect((await daemon.health()).restore).toBe("wanted");
  const restored = await Effect.runPromise(
    savingHttp.restore(linkTo(daemon), contextOf(daemon), { body, timeoutMs: 20_000 }),
  );
  await waiting;
  expect(restored).toMatchObject({ commits: 1, files: 6, skipped: [], error: null });
  expect(await daemon.git("status", "--porcelain")).toBe(status);
  expect(await daemon.git("rev-parse", "HEAD")).toBe(head);
  const { commits, ...again } = await list(daemon);
  // Git has the commits in another pack now.
  expect({ ...again, commits: commits.map(({ ref, commit }) => [ref, commit]) }).toEqual({
    ...listing,
    commits: listing.commits.map(({ ref, commit }) => [ref, commit]),
  });
  expect((await daemon.health()).restore).toBe("done");
});

test("a delivery that breaks off is waited for again, and goes on where it was", async () => {
  const daemon = await ready({ files: { "README.md": "hello\n" } });
  for (const name of ["a.txt", "b.txt"]) writeFileSync(join(daemon.layout.workspace, name), `${name}\n`);
  const body = await buffer(await deliveryOf(daemon, await list(daemon)));
  await daemon.end();
  const waiting = daemon.reboot({ restore: true });
  await daemon.logged("waiting for saved work");
  const give = (delivery: Readable) =>
    Effect.runPromise(
      Effect.result(
        savingHttp.restore(linkTo(daemon), contextOf(daemon), { body: delivery, timeoutMs: 20_000 }),
      ),
    );
  const half = new PassThrough();
  half.write(body.subarray(0, body.length - 8));
  const first = give(half);
  await daemon.logged("saved work arrives");
  half.destroy(new Error("the service ended"));
  expect((await first)._tag).toBe("Failure");
  await daemon.logged("saved work broke off, waiting for it again");
  expect((await daemon.health()).restore).toBe("wanted");
  expect(await give(Readable.from([body], { objectMode: false }))).toMatchObject({
    success: { files: 2, renamed: [], skipped: [], error: null },
  });
  await waiting;
  expect(await daemon.git("status", "--porcelain")).toBe("?? a.txt\n?? b.txt\n");
});

test("the saves of two nodes arrive one after another, and a part that is repeated changes nothing", async () => {
  const daemon = await ready({ files: { "README.md": "hello\n" } });
  const at = (path: string): string => join(daemon.layout.workspace, path);
  writeFileSync(at("older.txt"), "older\n");
  writeFileSync(at("both.txt"), "older\n");
  await daemon.git("add", "-A");
  await daemon.git("commit", "-q", "-m", "not pushed");
  const older = await buffer(await deliveryOf(daemon, await list(daemon)));
  await daemon.git("reset", "-q", "--hard", "HEAD~1");
  writeFileSync(at("both.txt"), "newer\n");
  const newer = await buffer(await deliveryOf(daemon, await list(daemon)));
  await daemon.end();
  const waiting = daemon.reboot({ restore: true });
  await daemon.logged("waiting for saved work");
  const give = (bytes: Buffer, part: { readonly number: number; readonly isLast: boolean }) =>
    Effect.runPromise(
      savingHttp.restore(linkTo(daemon), contextOf(daemon), {
        body: Readable.from([bytes], { objectMode: false }),
        timeoutMs: 20_000,
        part,
      }),
    );
  const first = await give(older, { number: 1, isLast: false });
  expect(first).toMatchObject({ commits: 1, error: null });
  expect((await daemon.health()).restore).toBe("wanted");
  expect(await give(older, { number: 1, isLast: false })).toEqual(first);
  expect(await give(newer, { number: 2, isLast: true })).toMatchObject({
    files: 1,
    renamed: [{ path: "both.txt", as: "both.txt.saved" }],
    skipped: [],
    error: null,
  });
  await waiting;
  expect(await daemon.git("log", "-1", "--format=%s")).toContain("not pushed");
  expect(readFileSync(at("both.txt"), "utf8")).toBe("newer\n");
  expect(readFileSync(at("both.txt.saved"), "utf8")).toBe("older\n");
  expect(readFileSync(at("older.txt"), "utf8")).toBe("older\n");
  // The newer save does not know the older commit, and its index does not take that back.
  expect(await daemon.git("status", "--porcelain")).toBe(" M both.txt\n?? both.txt.saved\n");
});

test("a small file is saved as it was listed, whatever happens to it afterwards", async () => {
  const daemon = await ready();
  const at = (path: string): string => join(daemon.layout.workspace, path);
  writeFileSync(at("small.txt"), "as listed\n");
  const { items } = await list(daemon);
  writeFileSync(at("small.txt"), "later\n");
  const wanted = items.flatMap(({ kind, path, object }) => (object === null ? [] : [{ kind, path, object }]));
  expect(await read(daemon, { items: wanted, share: 1 })).toEqual([Buffer.from("as listed\n")]);
});

test("only the service reaches saved work", async () => {
  const daemon = await ready();
  for (const path of ["save/list", "save/read", "restore", "retire"]) {
    const headers = { "x-platform-user-context": contextOf(daemon, "owner") };
    const { status } = await daemon.ask(`/platform/${path}`, { method: "POST", headers, body: "{}" });
    expect([path, status]).toEqual([path, 403]);
  }
});

test("a retired sandbox has no runtime any more, and its work can still be listed", async () => {
  const daemon = await ready();
  writeFileSync(join(daemon.layout.workspace, "new.txt"), "new\n");
  await Effect.runPromise(savingHttp.retire(linkTo(daemon), contextOf(daemon)));
  expect((await daemon.health()).runtime).toMatchObject({ state: "stopped", pid: null });
  expect((await list(daemon)).items.map(({ path }) => path)).toEqual(["new.txt"]);
});
