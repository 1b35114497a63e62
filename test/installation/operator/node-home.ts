/** A data directory of a node, for commands of its operator. */
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/** @returns the directory, which is also the first of PATH, and the settings that name it */
export const makeNodeHome = (): {
  readonly home: string;
  readonly environment: Readonly<Record<string, string>>;
} => {
  const home = mkdtempSync(path.join(tmpdir(), "node-home-"));
  // Sandboxes of a root service have users of their own.
  chmodSync(home, 0o755);
  writeFileSync(path.join(home, "installation-id"), "11111111-1111-4111-8111-111111111111");
  const environment = {
    PLATFORM_DATA_DIR: home,
    PLATFORM_IMAGES_DIR: path.join(home, "images"),
    PATH: `${home}:${process.env["PATH"] ?? ""}`,
  };
  return { home, environment };
};
