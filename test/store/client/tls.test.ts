/** What an address of the database says about TLS. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { tlsOptions } from "../../../src/store/postgres/connection/tls.ts";
import { guardedDirectory } from "../../support/machine/guard.ts";

const { directory, remove } = guardedDirectory("platform-tls-");
afterAll(remove);
const root = path.join(directory, "root.crt");
writeFileSync(root, "a certificate");

const tls = (parameters: string) => tlsOptions(new URL(`postgres://db/x?${parameters}`));

test.each(["", "sslmode=disable", `sslmode=disable&sslrootcert=${root}`])("%s: none", (parameters) => {
  expect(tls(parameters)).toBe(false);
});

// Node verifies certificate and name where nothing else is said.
test.each(["allow", "prefer", "require", "verify-ca", "verify-full"])("%s verifies all", (mode) => {
  expect(tls(`sslmode=${mode}`)).toEqual({});
  const ca = Buffer.from("a certificate");
  expect(tls(`sslmode=${mode}&sslrootcert=${root}`)).toMatchObject({ ca });
  expect(tls(`sslmode=${mode}&sslrootcert=${root}`)).not.toHaveProperty("rejectUnauthorized");
  expect(tls(`sslmode=${mode}&sslrootcert=${root}`)).not.toHaveProperty("checkServerIdentity");
});

test("no-verify verifies nothing", () => {
  expect(tls("sslmode=no-verify")).toEqual({ rejectUnauthorized: false });
});

test("uselibpqcompat verifies the certificate, not the name", () => {
  for (const mode of ["require", "verify-ca"]) {
    const options = tls(`sslmode=${mode}&uselibpqcompat=true&sslrootcert=${root}`);
    expect(options).not.toHaveProperty("rejectUnauthorized");
    expect(options).toHaveProperty("checkServerIdentity");
  }
  expect(tls("sslmode=verify-full&uselibpqcompat=true")).toEqual({});
});
