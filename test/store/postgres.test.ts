import { storeConformance } from "../conformance/store.ts";
import { storeOfFile } from "../support/postgres.ts";

storeConformance("Postgres", storeOfFile());
