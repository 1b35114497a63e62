/** Imports over the network, from the tests' own server: what is dialled, and what is refused. */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { hostedBackend } from "../../src/git/repository/hosted.ts";
import { GitBackend, type GitError } from "../../src/git/port.ts";
import { runGit } from "../../src/git/run.ts";
import { gitOk } from "./git-client.ts";
import { readerPolicy } from "./server/policies.ts";
import { freshDirectory, scene, tip, useScene } from "./scene.ts";

useScene();
beforeEach(() => {
  scene.policies.set("", readerPolicy); // clients without a password may read
});

const portOf = (address: string): string => address.split(":")[1] ?? "";
const pathOf = (): string => `/v1/git/${scene.projectId}.git`;

const importInto = (directory: string, importFrom: string, allowHosts: readonly string[]) => {
  const projectId = randomUUID();
  const layer: Layer.Layer<GitBackend, GitError> = hostedBackend({ directory, allowHosts });
  const made = Effect.flatMap(GitBackend, (hosted) =>
    hosted.create({ projectId, importFrom, defaultBranch: null }),
  );
  return Effect.runPromise(
    Effect.result(Effect.provide(Effect.as(made, join(directory, `${projectId}.git`)), layer)),
  );
};

describe("an import over the network", () => {
  it("fetches the branches of a host that the operator allows", async () => {
    const from = `http://${scene.server.address}${pathOf()}`;
    const imported = await importInto(freshDirectory("imported"), from, ["127.0.0.1"]);
    const bare = imported._tag === "Success" ? imported.success : imported.failure.message;
    expect(await gitOk(bare, "rev-parse", "main")).toBe(await tip("refs/heads/main"));
    expect(await gitOk(bare, "config", "--local", "--list")).not.toContain(scene.server.address);
  });

  it("does not reach a host that is not allowed [G03]", async () => {
    const heard = scene.server.heard.length;
    const from = `http://${scene.server.address}${pathOf()}`;
    const refused = await importInto(freshDirectory("refused"), from, []);
    expect(refused).toMatchObject({ _tag: "Failure", failure: { code: "import_failed" } });
    expect(scene.server.heard).toHaveLength(heard);
  });

  it("does not follow a redirect [G03]", async () => {
    const elsewhere = createServer((request, response) => {
      const location = `http://${scene.server.address}${request.url ?? ""}`;
      response.writeHead(301, { location }).end();
    }).listen(0, "127.0.0.1");
    await once(elsewhere, "listening");
    // oxlint-disable-next-line typescript/consistent-type-assertions -- a TCP server's address is an object
    const { port } = elsewhere.address() as AddressInfo;
    const from = `http://127.0.0.1:${port}${pathOf()}`;
    const heard = scene.server.heard.length;
    const refused = await importInto(freshDirectory("redirected"), from, ["127.0.0.1"]);
    elsewhere.close();
    expect(refused).toMatchObject({ _tag: "Failure", failure: { code: "import_failed" } });
    expect(scene.server.heard).toHaveLength(heard);
  });

  it("dials the address that was looked up, even if the name resolves to another one by then [G03]", async () => {
    const port = portOf(scene.server.address);
    const listed = await Effect.runPromise(
      runGit({
        repository: scene.bare,
        args: ["ls-remote", `http://repository.invalid:${port}${pathOf()}`, "refs/heads/main"],
        config: { "http.curloptResolve": `repository.invalid:${port}:127.0.0.1` },
        environment: { GIT_ALLOW_PROTOCOL: "http" },
      }),
    );
    expect(listed.stdout.toString("utf8")).toContain(await tip("refs/heads/main"));
  });

  it("does not let git speak a protocol that was not requested [G03]", async () => {
    for (const address of [`http://${scene.server.address}${pathOf()}`, scene.bare, "ext::sh -c id"]) {
      // oxlint-disable-next-line no-await-in-loop -- one after another
      const refused = await Effect.runPromise(
        Effect.flip(runGit({ repository: scene.bare, args: ["ls-remote", "--", address] })),
      );
      expect(refused.message).toMatch(/transport '\w+' not allowed/);
    }
  });
});
