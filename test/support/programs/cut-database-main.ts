/**
 * Does to one database what a restart of its server does: every connection ends. A program of its own, so that a test can
 * run it at a fault point (src/store/ports/faults.ts) and nothing else happens meanwhile.
 *
 *   node test/support/programs/cut-database-main.ts SERVER-URL DATABASE gone   and none is let in any more
 *   node test/support/programs/cut-database-main.ts SERVER-URL DATABASE cut    and new ones are let in at once
 *   node test/support/programs/cut-database-main.ts SERVER-URL DATABASE back   lets new ones in again
 */
import { connectBare } from "../postgres/bare.ts";

const [, , url, database = "", state] = process.argv;
const client = await connectBare(url ?? "");
await client.query(`ALTER DATABASE "${database}" ALLOW_CONNECTIONS ${state !== "gone"}`);
if (state !== "back")
  await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [database]);
await client.end();
