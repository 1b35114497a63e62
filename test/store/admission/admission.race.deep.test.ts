import { storeOfFile } from "../../support/postgres/postgres.ts";
import { admissionRaces } from "./admission.race.ts";

admissionRaces(storeOfFile(), 150);
