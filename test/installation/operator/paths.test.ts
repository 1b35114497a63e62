/** Paths that an operator gives by mistake: the refusal says which argument or setting is wrong, and what to do. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import * as Effect from "effect/Effect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { backup } from "../../../src/installation/operator/backup/backup.ts";
import { importArchive } from "../../../src/installation/operator/images/images.ts";
import { restore } from "../../../src/installation/operator/backup/restore.ts";
import { claimDataDirectory } from "../../../src/store/data-directory.ts";

let directory: string;
const at = (name: string) => path.join(directory, name);
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), "operator-paths-"));
  writeFileSync(at("file"), "");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const refusalOf = async <E extends Error>(effect: Effect.Effect<unknown, E>): Promise<string> =>
  (await Effect.runPromise(Effect.flip(effect))).message;

const claimed = (dataDir: string) => refusalOf(Effect.scoped(claimDataDirectory(dataDir)));

describe("the data directory", () => {
  const REMEDY =
    "Set PLATFORM_DATA_DIR to a directory in which this user may write. A missing one is created.";

  it("is not a file, and not below one", async () => {
    expect(await claimed(at("file"))).toBe(
      `The data directory ${at("file")} (PLATFORM_DATA_DIR) cannot be used: a file is in its place. ${REMEDY}`,
    );
    expect(await claimed(at("file/below"))).toBe(
      `The data directory ${at("file/below")} (PLATFORM_DATA_DIR) cannot be used: a part of its path is a file and not a directory. ${REMEDY}`,
    );
  });

  it("of a restore is not a file", async () => {
    const request = { dataDir: at("file"), file: at("file"), masterKey: null, takeOver: false };
    expect(await refusalOf(restore(request))).toBe(
      `The data directory ${at("file")} (PLATFORM_DATA_DIR) is a file. Set PLATFORM_DATA_DIR to an empty or new directory.`,
    );
    expect(readdirSync(directory)).toEqual(["file"]);
  });

  it("of a backup has an installation", async () => {
    const request = { dataDir: at("none"), masterKey: null, file: at("new") };
    expect(await refusalOf(backup(request))).toBe(
      `${at("none")} has no installation with an embedded database. Set PLATFORM_DATA_DIR to the data directory of the service.`,
    );
    expect(existsSync(at("new"))).toBe(false);
  });
});

describe("the file", () => {
  it.each([
    ["none", "it does not exist"],
    ["", "it is a directory"],
    ["file/below", "a part of its path is a file and not a directory"],
  ])("of a restore or an import is refused if it is %j: %s", async (name, fault) => {
    const dataDir = at("data");
    const file = path.resolve(directory, name);
    expect(await refusalOf(restore({ dataDir, file, masterKey: null, takeOver: false }))).toBe(
      `${file} cannot be restored: ${fault}. Give the path of a file of \`platform backup\`.`,
    );
    expect(existsSync(dataDir)).toBe(false);
    mkdirSync(dataDir);
    writeFileSync(path.join(dataDir, "installation-id"), "x\n");
    const environment = { PLATFORM_DATA_DIR: dataDir };
    expect(await refusalOf(importArchive(environment, { name: "tools", file }))).toBe(
      `${file} cannot be imported: ${fault}. Give the path of an image's archive.`,
    );
  });

  it.each([
    ["none/new", "none", "it does not exist"],
    ["file/new", "file", "a part of its path is a file and not a directory"],
  ])("of a backup is not written as %s", async (name, parent, fault) => {
    const request = { dataDir: at("data"), masterKey: null, file: at(name) };
    expect(await refusalOf(backup(request))).toBe(
      `The backup cannot be written into the directory ${at(parent)}: ${fault}. Choose a directory that exists and in which this user may write.`,
    );
  });

  it("of a backup replaces nothing", async () => {
    const refusal = (file: string) => refusalOf(backup({ dataDir: at("data"), masterKey: null, file }));
    expect(await refusal(at("file"))).toBe(`${at("file")} already exists. Choose another file.`);
    expect(await refusal(directory)).toBe(
      `${directory} is a directory. Give the name of a new file, for example one in it.`,
    );
  });
});
