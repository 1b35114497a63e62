/** A token for a session's agent, beside the one in its sandbox: for tests that call the gateway as its agent does. */
import { randomBytes } from "node:crypto";
import { connectBare } from "../postgres/bare.ts";
import { makeToken, TOKEN_BYTES, tokenHash } from "../../../src/domain/ids.ts";

/** @param url of the service's database */
export const agentToken = async (url: string, sessionId: string): Promise<string> => {
  const token = makeToken("pat", new Uint8Array(randomBytes(TOKEN_BYTES)));
  const client = await connectBare(url);
  try {
    await client.query(
      `INSERT INTO tokens (id, account_id, user_id, project_id, session_id, sandbox_id, kind, origin, name, hash, created_at)
       SELECT gen_random_uuid(), account_id, user_id, project_id, session_id, sandbox_id, kind, origin, name, $2, created_at
       FROM tokens WHERE session_id = $1 AND kind = 'access' LIMIT 1`,
      [sessionId, tokenHash(token)],
    );
  } finally {
    await client.end();
  }
  return token;
};
