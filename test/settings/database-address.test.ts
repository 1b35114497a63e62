/** DATABASE_URL and the variables of libpq as one address. */
import * as Result from "effect/Result";
import { expect, test } from "vitest";
import { readDatabaseAddress } from "../../src/settings/database-address.ts";
import type { Environment } from "../../src/settings/setting-reader.ts";

const read = (text: string, environment: Environment = {}): string =>
  Result.match(readDatabaseAddress(text, environment), {
    onSuccess: (address) => address,
    onFailure: (expected) => `expected ${expected}`,
  });

const ANOTHER =
  "expected the address of a Postgres database, for example postgres://user:password@db.example.com:5432/platform";

test.each([
  ["postgres://user:word@db/x?sslmode=require", "postgres://user:word@db/x?sslmode=require"],
  ["POSTGRES://db/x", "postgres://db/x"],
  ["//db/x", "postgresql://db/x"],
  ["postgresql:///x?host=/run/postgresql", "postgresql:///x?host=/run/postgresql"],
  ["/run/postgresql x", "postgresql:///x?host=%2Frun%2Fpostgresql"],
  ["/run/postgresql", "postgresql:///?host=%2Frun%2Fpostgresql"],
  ["socket:/run/postgresql?db=x", "postgresql:///x?host=%2Frun%2Fpostgresql"],
  [
    "socket://user:wo%20rd@/run/postgresql?db=x",
    "postgresql:///x?host=%2Frun%2Fpostgresql&user=user&password=wo+rd",
  ],
  ["postgres://user:word@/x?host=/run/postgresql", "postgres://user:word@localhost/x?host=/run/postgresql"],
  ["postgres://user:50%of@db/x", "postgres://user:50%25of@db/x"],
  ["postgres://db/x?ssl=true", "postgres://db/x?ssl=true&sslmode=verify-full"],
  ["postgres://db/x?ssl=no-verify", "postgres://db/x?ssl=no-verify&sslmode=no-verify"],
  ["postgres://db/x?ssl=0", "postgres://db/x?ssl=0&sslmode=disable"],
  ["postgres://db/x?sslrootcert=/ca", "postgres://db/x?sslrootcert=%2Fca&sslmode=verify-full"],
  [
    "postgres://db/x?sslmode=require&uselibpqcompat=true",
    "postgres://db/x?sslmode=no-verify&uselibpqcompat=true",
  ],
  [
    "postgres://db/x?sslmode=verify-ca&uselibpqcompat=true",
    "postgres://db/x?sslmode=verify-ca&uselibpqcompat=true",
  ],
])("%s", (text, address) => {
  expect(read(text)).toBe(address);
});

const VARIABLES = {
  PGUSER: "their",
  PGPASSWORD: "word & more",
  PGHOST: "db",
  PGPORT: "5433",
  PGDATABASE: "y",
  PGSSLMODE: "no-verify",
  PGOPTIONS: "-c search_path=z",
};

test("variables fill in what the URL leaves out", () => {
  const { searchParams } = new URL(read("postgresql://", VARIABLES));
  expect(Object.fromEntries(searchParams)).toEqual({
    user: "their",
    password: "word & more",
    host: "db",
    port: "5433",
    dbname: "y",
    sslmode: "no-verify",
    options: "-c search_path=z",
  });
});

test("variables change nothing that the URL says", () => {
  const whole = "postgres://user:word@host:1/x?sslmode=disable&options=-c%20a%3Db";
  expect(read(whole, VARIABLES)).toBe(whole);
  const inParameters = "postgresql:///x?user=u&password=p&host=h&port=1&sslrootcert=ca&options=o";
  expect(read(inParameters, VARIABLES)).toBe(`${inParameters}&sslmode=verify-full`);
});

test("refuses other databases, and parameters without effect", () => {
  expect(read("mysql://root:canary@127.0.0.1/x")).toBe(ANOTHER);
  expect(read("db.example.com:5432/x")).toBe(ANOTHER);
  expect(read("x")).toBe(ANOTHER);
  expect(read("postgres://db/x?statement_timeout=5")).toBe(
    "expected no statement_timeout, which the service sets itself",
  );
  expect(read("postgres://db/x", { PGSSLNEGOTIATION: "direct" })).toBe(
    "expected sslnegotiation=postgres or none",
  );
  expect(read("postgres://db/x?sslmode=on")).toBe(
    "expected an sslmode of disable, allow, prefer, require, verify-ca, verify-full, no-verify",
  );
});
