/**
 * Two nodes over one database, each with mirrors of its own, while the credential of a project's repository is replaced:
 * whatever begins after that goes by the new one, on the node that was not told as well.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { join } from "node:path";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Scope from "effect/Scope";
import { afterAll, beforeAll, expect, it } from "vitest";
import { keyringLayer } from "../../../src/services/keyring.ts";
import { upstreamsLayer } from "../../../src/services/projects/upstreams.ts";
import { credentialPlace, encodeCredential } from "../../../src/domain/repository/repository-credential.ts";
import { NONCE_BYTES, sealSecret } from "../../../src/domain/secret/secret.ts";
import type { Repositories } from "../../../src/git/backends.ts";
import { openExternal, plainRemote } from "../../../src/git/upstream/external.ts";
import type { WritePolicy } from "../../../src/git/server/ref-policy.ts";
import { Upstreams } from "../../../src/git/upstream/upstreams.ts";
import { memoryStore } from "../../twins/store/layer.ts";
import { Projects } from "../../../src/store/ports/projects/projects.ts";
import { makeWorld, NOON } from "../../support/world/world.ts";
import { type ExternalWorld, makeExternalWorld } from "./external-setup.ts";
import { git, gitOk } from "../git-client.ts";
import { type GitServer, startGitServer } from "../git-server.ts";
import { userPolicy } from "../server/policies.ts";

const scope = Effect.runSync(Scope.make());
const run = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Scope.provide(effect, scope));

const keys = { current: { version: 1, bytes: new Uint8Array(randomBytes(32)) }, former: [] };
const projectId = randomUUID();
const policies = new Map<string, WritePolicy>([["person", userPolicy]]);

/** Longer than any test: what was fetched, or could not be, is as good as now. */
const AN_HOUR = 3_600_000;

let world: ExternalWorld;
let nodes: readonly { readonly kept: Repositories; readonly server: GitServer }[] = [];
let renew: (password: string) => Promise<unknown>;
let username = "";

const sealed = (password: string): Uint8Array => {
  const value = encodeCredential({ kind: "password", username, password });
  return sealSecret(keys, credentialPlace(projectId), { value, nonce: randomBytes(NONCE_BYTES) });
};

beforeAll(async () => {
  world = await run(makeExternalWorld());
  ({ username } = world.server);
  await run(world.backend.create({ projectId, importFrom: null, defaultBranch: "main" }));
  const stores = Layer.mergeAll(memoryStore, keyringLayer(keys));
  const context = await run(Layer.build(Layer.provideMerge(upstreamsLayer, stores)));
  const { create, replaceCredential } = Context.get(context, Projects);
  const { accountId, userId } = await run(Effect.provideContext(makeWorld(1), context));
  await run(
    create({
      id: projectId,
      accountId,
      name: "elsewhere",
      repository: { kind: "git", url: `${world.server.origin}/${projectId}.git` },
      defaultBranch: "main",
      createdBy: userId,
      credential: sealed(world.server.password),
      now: NOON,
    }),
  );
  renew = (password) => run(replaceCredential(projectId, sealed(password), NOON));
  nodes = await Promise.all(
    ["one", "other"].map(async (name) => {
      const kept = await run(
        openExternal({
          directory: join(world.root, name),
          allowHosts: ["127.0.0.1"],
          upstreams: Context.get(context, Upstreams),
          findRemote: plainRemote,
          freshMs: AN_HOUR,
        }),
      );
      return { kept, server: await startGitServer(kept.endpoint, policies) };
    }),
  );
});
afterAll(async () => {
  await Promise.all(nodes.map(({ server }) => server.close()));
  await run(Scope.close(scope, Exit.void));
});

const listing = (server: GitServer) =>
  git(world.root, "ls-remote", server.url(projectId, "person"), "refs/heads/main");

it("takes effect on every node at once, even if the previous one was just refused", async () => {
  world.server.password = "canary-renewed";
  const main = await gitOk(join(world.upstreams, `${projectId}.git`), "rev-parse", "main");
  for (const { kept, server } of nodes) {
    // The mirror does not exist yet, so a clone has to ask.
    expect((await listing(server)).code).not.toBe(0);
    const refused = await run(Effect.flip(kept.backend.branchTip({ projectId }, "main")));
    expect(refused.code).toBe("refused");
  }
  await renew("canary-renewed");
  for (const [index, { kept, server }] of nodes.entries()) {
    expect((await listing(server)).stdout).toContain(main);
    expect(await run(kept.backend.branchTip({ projectId }, "main"))).toBe(main);
    const branch = randomUUID();
    await run(kept.backend.createBranch({ projectId }, { branch, commit: main }));
    const work = join(world.root, `work-${index}`);
    await gitOk(world.root, "clone", "--quiet", server.url(projectId, "person"), work);
    await gitOk(work, "push", "--quiet", "origin", `HEAD:refs/heads/pushed-${index}`);
  }
});

it("ends access with the previous one, although the server still accepts it", async () => {
  const former = world.server.password;
  await renew("canary-wrong");
  for (const { kept } of nodes) {
    const branch = randomUUID();
    const commit = await gitOk(join(world.upstreams, `${projectId}.git`), "rev-parse", "main");
    for (const asked of [
      Effect.asVoid(kept.backend.branchTip({ projectId }, "main")),
      kept.backend.createBranch({ projectId }, { branch, commit }),
    ]) {
      const error = await run(Effect.flip(asked));
      expect(error.code).toBe("refused");
      expect(error.message).not.toContain("canary");
    }
  }
  await renew(former);
});
