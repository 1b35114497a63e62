/** nginx behind `/proxy/{port}/`, sending a file as the kernel does. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync, writeSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startNginx, type Nginx } from "../../support/machine/nginx.ts";
import { nginxProgram } from "../../support/requirements.ts";
import { Served } from "../support/served.ts";
import { deepTest } from "../../support/vitest/rings.ts";

const MIB = 1024 * 1024;
const WHOLE = 1024 * MIB;
/** Far more than chunks on their way take, far less than a file that is collected. */
const HELD_MAX = 200 * MIB;

describe.skipIf(nginxProgram === undefined)("nginx as an upstream", () => {
  let nginx: Nginx;
  let served: Served;
  const expected = createHash("sha256");
  beforeAll(async () => {
    served = await Served.start((_, response) => response.end("runtime"));
    nginx = await startNginx(
      (port, files) => `server { listen 127.0.0.1:${port}; sendfile on; location / { root ${files}; } }`,
    );
    const file = openSync(path.join(nginx.files, "large"), "w");
    const block = Buffer.alloc(MIB);
    for (let index = 0; index < WHOLE / MIB; index += 1) {
      block.fill(index & 255);
      block.writeUInt32BE(index);
      expected.update(block);
      writeSync(file, block);
    }
    closeSync(file);
  });
  afterAll(async () => {
    await served.stop();
    await nginx.stop();
  });

  const get = async (headers: Record<string, string> = {}): Promise<IncomingMessage> => {
    const call = served.open(`/proxy/${nginx.port}/large`, { headers });
    call.end();
    const [response] = (await once(call, "response")) as [IncomingMessage];
    return response;
  };

  test("sends 1 GiB by sendfile, byte for byte, and nothing on the way collects it [X15]", async () => {
    const response = await get();
    expect(response.headers["content-length"]).toBe(String(WHOLE));
    const hash = createHash("sha256");
    const before = process.memoryUsage.rss();
    let [came, most] = [0, 0];
    for await (const chunk of response) {
      hash.update(chunk as Buffer);
      came += (chunk as Buffer).length;
      most = Math.max(most, process.memoryUsage.rss() - before);
    }
    expect([came, hash.digest("hex")]).toEqual([WHOLE, expected.digest("hex")]);
    expect(most).toBeLessThan(HELD_MAX);
  });

  deepTest(
    "is held back while its reader does not read, and released when the reader leaves [X15]",
    async () => {
      const response = await get();
      const before = process.memoryUsage.rss();
      for (let round = 0; round < 100; round += 1) await served.ask(`/proxy/${nginx.port}/none`);
      expect(process.memoryUsage.rss() - before).toBeLessThan(HELD_MAX);
      response.destroy();
      await once(response, "close");
      const part = await get({ range: `bytes=${MIB}-${MIB + 3}` });
      expect([part.statusCode, part.headers["content-range"]]).toEqual([
        206,
        `bytes ${MIB}-${MIB + 3}/${WHOLE}`,
      ]);
      expect(Buffer.concat(await part.toArray()).readUInt32BE()).toBe(1);
    },
  );
});
