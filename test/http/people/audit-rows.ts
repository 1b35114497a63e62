/** Reads the audit record in tests of the changes that it records. */
import { expectStatus, listOf, type Fields } from "../../support/service/requests.ts";
import type { TestService } from "../../support/service/service.ts";

/** The newest rows, as an owner of the first account sees them. */
export const auditRows = async (service: TestService, query = ""): Promise<readonly Fields[]> =>
  listOf(expectStatus(await service.request("GET", `/v1/audit?limit=200${query}`), 200), "events");

/** What the rows of an action say, the newest first. */
export const auditOf = async (service: TestService, action: string): Promise<readonly Fields[]> =>
  auditRows(service, `&action=${action}`);
