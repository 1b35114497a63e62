/** A service that is killed in the middle of a build: its processes end with it, and the next service removes the rest. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { processesSeeing } from "../../src/sandbox/machine/processes.ts";
import { BASE, missing, openRealBuilder, type RealBuilder } from "./real-builder.ts";

const PROGRAM = join(import.meta.dirname, "..", "support", "programs", "builder-main.ts");

describe.skipIf(missing !== "")(`a service that is killed while it builds ${missing}`, () => {
  let real: RealBuilder;
  beforeAll(async () => {
    real = await openRealBuilder();
  });
  afterAll(() => real.close());

  it("leaves no process, and the next service removes its files and builds", async () => {
    const { options } = real;
    const request = await real.prepare({ Dockerfile: `${BASE}RUN echo hanging; sleep 1000 & sleep 1000\n` });
    const service = spawn(process.execPath, [PROGRAM, JSON.stringify([options, request])], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(service, "exit");
    for await (const chunk of service.stdout) if (String(chunk).includes("hanging")) break;
    expect(processesSeeing(join(options.runDir, request.id)).length).toBeGreaterThan(2);
    service.kill("SIGKILL");
    await ended;
    // The kernel kills the sandbox's PID 1 when its parent is gone, and with it everything in its namespace.
    while (processesSeeing(join(options.runDir, request.id)).length > 0) await sleep(10);
    expect(await real.leftovers(request)).not.toEqual([]);

    // The builder of `real` opens with its first build.
    const next = await real.build({ Dockerfile: `${BASE}RUN echo built after ${request.id}\n` });
    expect(next.failure).toBeNull();
    expect(next.log).not.toContain("Using cache");
    expect(await real.leftovers(request)).toEqual([]);
    expect(readdirSync(join(options.directory, "builds"))).toEqual([]);
    expect(readdirSync(join(options.directory, "stores"))).toHaveLength(1);
  });
});
