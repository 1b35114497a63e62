import { storeConformance } from "../conformance/store.ts";
import { storeOfFile } from "../support/postgres/postgres.ts";

storeConformance("Postgres", storeOfFile());
