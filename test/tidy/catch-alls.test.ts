/**
 * Every refusal in sign-in, git, builds, models and egress names its cause, and the branch for what is not known keeps the
 * other side's words. A new cause gets a row in its table, and so a message of its own.
 */
import * as Effect from "effect/Effect";
import { describe, expect, it } from "vitest";
import { classifyFailure as buildFailure } from "../../src/builder/buildah/failure.ts";
import { BuildOutput } from "../../src/builder/buildah/output.ts";
import { describeBuildFailure } from "../../src/domain/environment/build-failure.ts";
import { parseDockerfile } from "../../src/domain/environment/dockerfile.ts";
import { keyVerdict, noVerdict } from "../../src/domain/sandbox/model-key.ts";
import { MODEL_PROVIDERS } from "../../src/domain/sandbox/model.ts";
import { SIGN_IN_CAUSES } from "../../src/domain/person/sign-in.ts";
import { gitFailure, gitMessage } from "../../src/git/failure.ts";
import { githubRefusal as hostTrouble, githubTrouble } from "../../src/git/github/trouble.ts";
import { remoteError } from "../../src/git/upstream/remote.ts";
import { reasonPhrase, Refusal, refusalBody, refusalFor } from "../../src/sandbox/egress-messages.ts";
import { asking } from "../../src/sign-in/client.ts";

const WORDS = "the flux capacitor is empty";
const HOST = "code.example";
const [provider] = MODEL_PROVIDERS;
if (provider === undefined) throw new Error("no provider is known");

/** A build whose output ends with these words. */
const built = (source: string, log: string, code = 125): string => {
  const parsed = parseDockerfile(source);
  if (parsed.kind === "error") throw new Error(parsed.problem);
  const output = new BuildOutput(parsed.stages, () => undefined);
  output.write(Buffer.from(log));
  const failure = buildFailure({ code, output, refused: [], diskBytes: 1000, stages: parsed.stages });
  return `${describeBuildFailure(failure)} ${"tail" in failure ? failure.tail : ""}`;
};
const hostStatus = (status: number) => hostTrouble(status, WORDS).error(HOST).message;

/** The message of each catch-all branch for words that it does not know. */
const CATCH_ALLS: Readonly<Record<string, string | (() => Promise<string>)>> = {
  "sign-in: any error of the provider": async () =>
    (await Effect.runPromise(Effect.flip(asking(() => Promise.reject(new Error(WORDS)))))).why,
  "git: any failure of a server": remoteError(`fatal: ${WORDS}`, null, "192.0.2.1").message,
  "git: any failure here": gitFailure("merge", { stderr: `fatal: ${WORDS}`, repository: null }).message,
  "git: no line that names a fault": gitMessage(WORDS, null),
  "git: a code host that is away": githubTrouble(WORDS).error(HOST).message,
  "git: a code host that fails": hostStatus(500),
  "git: any refusal of a code host": hostStatus(418),
  "builds: before the first step": built("FROM a\n", `Error: ${WORDS}\n`),
  "builds: any failure of a step": built(
    "FROM a\nRUN x\n",
    `STEP 1/2: FROM a\nSTEP 2/2: RUN x\n${WORDS}\n`,
    1,
  ),
  "builds: any failure of a base": built("FROM a\n", `STEP 1/1: FROM a\nError: ${WORDS}\n`),
  "models: any answer about a key": keyVerdict(provider, "key", {
    status: 418,
    text: JSON.stringify({ error: { message: WORDS } }),
  }).message,
  "models: no answer": noVerdict(provider, WORDS).message,
  "egress: any refusal": refusalBody(new Refusal(502, WORDS)),
  "egress: the status line of any refusal": reasonPhrase(new Refusal(502, WORDS), HOST),
};

describe("the branch for what is not known", () => {
  it.each(Object.entries(CATCH_ALLS))("%s keeps the other side's words", async (_, message) => {
    expect(typeof message === "string" ? message : await message()).toContain(WORDS);
  });

  it("egress: names the host, and leaves out the system's words, which may have addresses", () => {
    const refusal = refusalFor(new Error("connect ECONNREFUSED 10.0.0.1:443"));
    expect(refusalBody(refusal)).not.toContain("10.0.0.1");
    expect(reasonPhrase(refusal, HOST)).toBe(`Refused: ${HOST}: the host could not be reached`);
  });
});

describe("each known cause has a message of its own", () => {
  it("in sign-in", () => {
    const messages = Object.values(SIGN_IN_CAUSES);
    expect(new Set(messages).size).toBe(messages.length);
    for (const message of messages) expect(message).toMatch(/^[A-Z].{20,}\.$/);
  });

  it("of a code host's statuses", () => {
    const messages = [301, 401, 403, 404, 409, 418, 422, 429, 500, 503].map(hostStatus);
    expect(new Set(messages).size).toBe(messages.length);
  });
});
