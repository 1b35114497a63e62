/** Looks for what may be nowhere but sealed: in every row, log line and file of a service. */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect } from "vitest";
import { connectBare } from "../support/postgres/bare.ts";
import type { TestService } from "../support/service/service.ts";

/** Every row of every table, as text. */
export const everyRow = async (service: TestService): Promise<string> => {
  const client = await connectBare(service.databaseUrl);
  try {
    const { rows } = await client.query<{ name: string }>(
      "SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) AS name FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') AND table_type = 'BASE TABLE'",
    );
    let text = "";
    for (const { name } of rows) {
      const all = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} AS t`);
      text += all.rows.map(({ row }) => row).join("\n");
    }
    return text;
  } finally {
    await client.end();
  }
};

/** Empty for a file that the service has removed since it was listed, such as a lock of git. */
const contentOf = (file: string): string => {
  try {
    return readFileSync(file, "latin1");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
};

export const expectNowhere = async (service: TestService, secret: string): Promise<void> => {
  const rows = await everyRow(service);
  expect(rows).not.toContain(secret);
  // As bytea shows it.
  expect(rows).not.toContain(Buffer.from(secret).toString("hex"));
  expect(service.logs.join("\n")).not.toContain(secret);
  const entries = readdirSync(service.dataDir, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((file) => path.join(file.parentPath, file.name));
  for (const file of files) expect(contentOf(file).includes(secret), file).toBe(false);
};
