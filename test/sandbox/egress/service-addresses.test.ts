/** The addresses behind the service's own names, which wildcards of the allow list do not open. */
import { expect, it } from "vitest";
import { ServiceAddresses } from "../../../src/sandbox/service-addresses.ts";

it("hold while the resolver fails", async () => {
  const addresses = ["192.0.2.7", "2001:db8::7"];
  const answers = [null, addresses, null];
  const resolve = (): Promise<readonly string[]> => {
    const answer = answers.shift();
    return answer == null ? Promise.reject(new Error("SERVFAIL")) : Promise.resolve(answer);
  };
  const service = new ServiceAddresses({ resolve }, 0);
  expect(await service.resolve(["platform.example"])).toEqual([]);
  expect(await service.resolve(["platform.example", "*.previews.example"])).toEqual(addresses);
  expect(await service.resolve(["platform.example"])).toEqual(addresses);
});
