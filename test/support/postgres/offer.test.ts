import { mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { askForPostgres, offerPostgres, type Offer } from "./offer.ts";
import { processesIn, programOf } from "../machine/processes-in.ts";

let directory: string;
let offer: Offer;

beforeEach(async () => {
  directory = realpathSync(mkdtempSync(path.join(tmpdir(), "offer-")));
  vi.stubEnv("TMPDIR", directory);
  vi.stubEnv("DATABASE_URL", undefined);
  offer = await offerPostgres();
});

afterEach(async () => {
  await offer.close();
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true, force: true });
});

const servers = () => processesIn(directory).filter((pid) => programOf(pid) === "postgres");

it("starts no Postgres until a test asks, and ends the one that it started", async () => {
  expect(readdirSync(directory)).toEqual([]);
  const [first, second] = await Promise.all([askForPostgres(offer.address), askForPostgres(offer.address)]);
  expect(second).toEqual(first);
  expect(servers()).not.toEqual([]);
  expect(readdirSync(directory)).toHaveLength(1);
  await offer.close();
  expect(processesIn(directory)).toEqual([]);
  expect(readdirSync(directory)).toEqual([]);
});

it("leaves nothing behind if it ends before the start is complete", async () => {
  const asked = askForPostgres(offer.address);
  asked.catch(() => undefined);
  await expect.poll(() => readdirSync(directory)).toHaveLength(1);
  await offer.close();
  await expect(asked).rejects.toThrow();
  expect(processesIn(directory)).toEqual([]);
  expect(readdirSync(directory)).toEqual([]);
});

it("reports to every test why Postgres did not start", async () => {
  vi.stubEnv("DATABASE_URL", "postgres://stranger@127.0.0.1:1/nothing");
  await expect(askForPostgres(offer.address)).rejects.toThrow("Postgres did not start");
  await expect(askForPostgres(offer.address)).rejects.toThrow("Postgres did not start");
});
