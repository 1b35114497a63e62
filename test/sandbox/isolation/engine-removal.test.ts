/** Removals by an engine that refuses at first (src/sandbox/containers/engine.ts). The engine is a stand-in that counts. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ContainerEngine } from "../../../src/sandbox/containers/engine.ts";

/** @param refusals how often it refuses. @returns how the removal ended, and how often it was asked. */
const removal = async (status: number, refusals: number): Promise<readonly [string, number]> => {
  const directory = mkdtempSync(join(tmpdir(), "platform-test-engine-"));
  const socket = join(directory, "sock");
  let asked = 0;
  const server = createServer((_, answer) => {
    asked += 1;
    const isRefused = asked <= refusals;
    answer.writeHead(isRefused ? status : 204, { "content-type": "application/json" });
    answer.end(isRefused ? JSON.stringify({ message: "container state improper: stopped" }) : undefined);
  });
  try {
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    const end = await new ContainerEngine(socket).remove("one").then(
      () => "removed",
      (error: unknown) => String(error),
    );
    return [end, asked];
  } finally {
    server.closeAllConnections();
    server.close();
    rmSync(directory, { recursive: true });
  }
};

it("asks again where the engine cannot remove a container that is about to end", async () => {
  expect(await removal(500, 2)).toEqual(["removed", 3]);
});

it("takes a container that is gone as removed", async () => {
  expect(await removal(404, 1)).toEqual(["removed", 1]);
});

it("says what the engine said if it refuses ten times", async () => {
  const [end, asked] = await removal(500, 100);
  expect(end).toMatch(/asked to remove a container: container state improper: stopped$/);
  expect(asked).toBe(10);
});
