#include "viewer/model/patient.h"

#include "viewer/model/model.h"

const char *oct_view_patient_eye(const struct oct_view_model *model)
{
    return model->daemon.record.eye;
}

const char *oct_view_patient_pseudonym(const struct oct_view_model *model)
{
    return model->daemon.record.pseudonym;
}

const char *oct_view_patient_lacks(const struct oct_view_model *model)
{
    bool has_eye = oct_view_patient_eye(model)[0] != '\0';
    bool has_pseudonym = oct_view_patient_pseudonym(model)[0] != '\0';

    return has_eye && has_pseudonym ? NULL
           : has_eye                ? "a pseudonym"
           : has_pseudonym          ? "an eye"
                                    : "a label";
}
